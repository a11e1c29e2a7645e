# One role a job, with what it reads and writes and nothing else. A name below is a folder of a run.
locals {
  # Every job reads the run's configuration, plans, seals and leases; none may overwrite or delete anything below tables/.
  read_by_all = ["run.toml", "control/*"]

  jobs = {
    synthesize = {
      reads  = ["tables/candidates/*"]
      writes = ["tables/candidates/*", "control/synthesize/*"]
    }
    verify = {
      reads  = ["tables/candidates/*", "tables/admissions/*", "tables/tasks/*", "tables/task_secrets/*", "tables/rejections/*"]
      writes = ["tables/admissions/*", "tables/tasks/*", "tables/task_secrets/*", "tables/rejections/*", "control/verify/*"]
    }
    # No right to what holds references or hidden tests: candidates, admissions, task_secrets.
    rollout = {
      reads  = ["tables/tasks/*", "tables/trajectories/*", "checkpoints/*"]
      writes = ["tables/trajectories/*", "control/rollout/*"]
    }
    score = {
      reads  = ["tables/tasks/*", "tables/task_secrets/*", "tables/trajectories/*", "tables/rewards/*"]
      writes = ["tables/rewards/*", "control/score/*", "control/rollout/*"]
    }
    train = {
      reads = ["tables/trajectories/*", "tables/rewards/*", "tables/metrics/*", "checkpoints/*", "tensorboard/*"]
      writes = [
        "tables/metrics/*", "checkpoints/*", "tensorboard/*",
        "control/checkpoints/*", "control/retired/*", "control/rollout/*", "control/score/*",
      ]
    }
    evaluate = {
      reads  = ["tables/tasks/*", "tables/trajectories/*", "tables/rewards/*", "tables/metrics/*"]
      writes = ["tables/metrics/*", "control/evaluate/*", "control/rollout/*", "control/score/*"]
    }
    endpoint = {
      reads  = ["tables/trajectories/*", "checkpoints/*"]
      writes = ["control/endpoints/*", "control/serve/*"]
    }
  }

  # What no role but these may read, whatever else is attached to it.
  secret_tables = ["tables/candidates/*", "tables/admissions/*", "tables/task_secrets/*", "tables/rejections/*"]
  sees_secrets  = ["synthesize", "verify", "score"]

  trusts = concat(
    [for service in var.trusted_services : {
      Effect    = "Allow"
      Action    = "sts:AssumeRole"
      Principal = { Service = service }
    }],
  )
}

resource "aws_iam_role" "job" {
  for_each = local.jobs
  name     = "${var.name}-${each.key}"
  tags     = var.tags

  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = concat(local.trusts, var.oidc == null ? [] : [{
      Effect    = "Allow"
      Action    = "sts:AssumeRoleWithWebIdentity"
      Principal = { Federated = var.oidc.provider_arn }
      Condition = {
        StringEquals = {
          "${trimprefix(var.oidc.issuer, "https://")}:sub" = "system:serviceaccount:${var.oidc.namespace}:rollmill-${each.key}"
          "${trimprefix(var.oidc.issuer, "https://")}:aud" = "sts.amazonaws.com"
        }
      }
    }])
  })
}

resource "aws_iam_role_policy" "job" {
  for_each = local.jobs
  name     = "run"
  role     = aws_iam_role.job[each.key].id

  policy = jsonencode({
    Version = "2012-10-17"
    Statement = concat([
      {
        Sid       = "List"
        Effect    = "Allow"
        Action    = ["s3:ListBucket"]
        Resource  = aws_s3_bucket.runs.arn
        Condition = { StringLike = { "s3:prefix" = var.prefix == "" ? ["*"] : ["${var.prefix}/*"] } }
      },
      {
        Sid      = "Read"
        Effect   = "Allow"
        Action   = ["s3:GetObject"]
        Resource = [for folder in concat(local.read_by_all, each.value.reads) : "${local.run}/${folder}"]
      },
      {
        Sid    = "Write"
        Effect = "Allow"
        # Large files go up in parts.
        Action   = ["s3:PutObject", "s3:AbortMultipartUpload"]
        Resource = [for folder in each.value.writes : "${local.run}/${folder}"]
      },
      ],
      contains(local.sees_secrets, each.key) ? [] : [{
        Sid      = "NoSecrets"
        Effect   = "Deny"
        Action   = ["s3:GetObject", "s3:GetObjectVersion"]
        Resource = [for folder in local.secret_tables : "${local.run}/${folder}"]
      }],
      var.kms_key_arn == null ? [] : [{
        Sid      = "Key"
        Effect   = "Allow"
        Action   = ["kms:Decrypt", "kms:GenerateDataKey"]
        Resource = var.kms_key_arn
      }],
    )
  })
}
