# What holds for everybody, people with full rights included: parts and records are created once and never changed. S3 checks it, so
# a program that forgets the header cannot overwrite what another committed.
resource "aws_s3_bucket_policy" "runs" {
  bucket     = aws_s3_bucket.runs.id
  depends_on = [aws_s3_bucket_public_access_block.runs]

  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      {
        Sid       = "CreateOnly"
        Effect    = "Deny"
        Principal = "*"
        Action    = "s3:PutObject"
        Resource  = ["${local.run}/tables/*", "${local.run}/control/*", "${local.run}/run.toml"]
        Condition = {
          Null = { "s3:if-none-match" = "true" }
          # The parts of an upload have no such header; its completion has.
          Bool = { "s3:ObjectCreationOperation" = "true" }
        }
      },
      {
        Sid       = "PartsStay"
        Effect    = "Deny"
        Principal = { AWS = [for role in aws_iam_role.job : role.arn] }
        Action    = ["s3:DeleteObject", "s3:DeleteObjectVersion"]
        Resource  = ["${local.run}/*"]
      },
      {
        Sid       = "Encrypted"
        Effect    = "Deny"
        Principal = "*"
        Action    = "s3:*"
        Resource  = [aws_s3_bucket.runs.arn, "${aws_s3_bucket.runs.arn}/*"]
        Condition = { Bool = { "aws:SecureTransport" = "false" } }
      },
    ]
  })
}
