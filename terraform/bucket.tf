locals {
  bucket_name = coalesce(var.bucket_name, var.name)
}

resource "aws_s3_bucket" "runs" {
  bucket        = local.bucket_name
  force_destroy = var.force_destroy
  tags          = var.tags
}

# What was damaged or removed by hand can be brought back.
resource "aws_s3_bucket_versioning" "runs" {
  bucket = aws_s3_bucket.runs.id
  versioning_configuration {
    status = "Enabled"
  }
}

resource "aws_s3_bucket_server_side_encryption_configuration" "runs" {
  bucket = aws_s3_bucket.runs.id
  rule {
    apply_server_side_encryption_by_default {
      sse_algorithm     = var.kms_key_arn == null ? "AES256" : "aws:kms"
      kms_master_key_id = var.kms_key_arn
    }
    bucket_key_enabled = var.kms_key_arn != null
  }
}

resource "aws_s3_bucket_public_access_block" "runs" {
  bucket                  = aws_s3_bucket.runs.id
  block_public_acls       = true
  block_public_policy     = true
  ignore_public_acls      = true
  restrict_public_buckets = true
}

resource "aws_s3_bucket_ownership_controls" "runs" {
  bucket = aws_s3_bucket.runs.id
  rule {
    object_ownership = "BucketOwnerEnforced"
  }
}

resource "aws_s3_bucket_lifecycle_configuration" "runs" {
  bucket = aws_s3_bucket.runs.id

  # A trainer that is killed in the middle of an upload leaves its parts.
  rule {
    id     = "abandoned-uploads"
    status = "Enabled"
    filter {}
    abort_incomplete_multipart_upload {
      days_after_initiation = var.abort_uploads_days
    }
  }

  # Lifecycle rules match prefixes, not folders in the middle of a name: chunks carry a tag instead.
  rule {
    id     = "old-chunks"
    status = "Enabled"
    filter {
      tag {
        key   = "rollmill"
        value = "chunk"
      }
    }
    expiration {
      days = var.chunk_days
    }
  }

  rule {
    id     = "old-versions"
    status = "Enabled"
    filter {}
    noncurrent_version_expiration {
      noncurrent_days = var.old_version_days
    }
  }

  depends_on = [aws_s3_bucket_versioning.runs]
}
