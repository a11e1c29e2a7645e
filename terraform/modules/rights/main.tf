# Who may do what, as policy documents. No provider is needed: what a policy says follows from rights.json and the bucket's name alone,
# and is tested without a network.
#
# rights.json: names are folders of a run. Every job reads the run's configuration, plans, seals and leases; none may overwrite or
# delete anything. What holds references or hidden tests is read by those who check and grade, and denied to all others, whatever
# else is attached to them. Chunks are rows that are not committed yet: those of other jobs are denied to every job.
terraform {
  required_version = ">= 1.9"
}

locals {
  rights = jsondecode(file("${path.module}/rights.json"))
  jobs   = local.rights.jobs
  # Of any run: a run is one folder below the prefix.
  run = var.prefix == "" ? "${var.bucket_arn}/*" : "${var.bucket_arn}/${var.prefix}/*"

  policies = {
    for job, of in local.jobs : job => {
      Version = "2012-10-17"
      Statement = concat([
        {
          Sid      = "List"
          Effect   = "Allow"
          Action   = ["s3:ListBucket"]
          Resource = [var.bucket_arn]
          # A read of an object that is not there has no prefix, and is answered "not there" only to who may list.
          Condition = { StringLikeIfExists = { "s3:prefix" = var.prefix == "" ? ["*"] : ["${var.prefix}/*"] } }
        },
        {
          Sid      = "Read"
          Effect   = "Allow"
          Action   = ["s3:GetObject"]
          Resource = [for folder in concat(local.rights.read_by_all, of.reads) : "${local.run}/${folder}"]
        },
        ],
        length(of.writes) == 0 ? [] : [
          {
            Sid      = "Write"
            Effect   = "Allow"
            Action   = ["s3:PutObject", "s3:AbortMultipartUpload"]
            Resource = [for folder in of.writes : "${local.run}/${folder}"]
          },
          {
            # Chunks alone carry the tag by which the bucket's lifecycle removes them: to tag is to delete.
            Sid      = "TagChunks"
            Effect   = "Allow"
            Action   = ["s3:PutObjectTagging"]
            Resource = ["${local.run}/control/${job}*/chunks/*"]
          },
        ],
        [{
          Sid    = "ChunksOfOthers"
          Effect = "Deny"
          Action = ["s3:GetObject", "s3:GetObjectVersion"]
          Resource = [
            for other in keys(local.jobs) : "${local.run}/control/${other}*/chunks/*" if other != job
          ]
        }],
        contains(local.rights.sees_secrets, job) ? [] : [{
          Sid      = "NoSecrets"
          Effect   = "Deny"
          Action   = ["s3:GetObject", "s3:GetObjectVersion"]
          Resource = [for folder in local.rights.secret_tables : "${local.run}/${folder}"]
        }],
        var.kms_key_arn == null ? [] : [{
          Sid      = "Key"
          Effect   = "Allow"
          Action   = ["kms:Decrypt", "kms:GenerateDataKey"]
          Resource = [var.kms_key_arn]
        }],
      )
    }
  }

  # What holds for everybody, people with full rights included: parts and records are created once and never changed. S3 checks it,
  # so a program that forgets the header cannot overwrite what another committed.
  bucket_policy = {
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
        Principal = { AWS = var.role_arns }
        Action    = ["s3:DeleteObject", "s3:DeleteObjectVersion"]
        Resource  = ["${local.run}/*"]
      },
      {
        Sid       = "Encrypted"
        Effect    = "Deny"
        Principal = "*"
        Action    = "s3:*"
        Resource  = [var.bucket_arn, "${var.bucket_arn}/*"]
        Condition = { Bool = { "aws:SecureTransport" = "false" } }
      },
    ]
  }
}

variable "bucket_arn" {
  description = "The bucket of the runs."
  type        = string
}

variable "prefix" {
  description = "Runs lie below this prefix, one folder each; empty: directly in the bucket."
  type        = string
  default     = ""
}

variable "kms_key_arn" {
  description = "Key that encrypts objects; null: one that S3 itself holds."
  type        = string
  default     = null
}

variable "role_arns" {
  description = "Roles of the jobs, which may delete nothing."
  type        = list(string)
  default     = []
}

output "jobs" {
  description = "Jobs, with the folders of a run that each reads and writes."
  value       = local.jobs
}

output "policies" {
  description = "The policy of each job's role, as JSON."
  value       = { for job, policy in local.policies : job => jsonencode(policy) }
}

output "bucket_policy" {
  description = "The bucket's policy, as JSON."
  value       = jsonencode(local.bucket_policy)
}
