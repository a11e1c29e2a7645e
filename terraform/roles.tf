# One role a job. Their names are known before the bucket is.
locals {
  jobs = keys(jsondecode(file("${path.module}/modules/rights/rights.json")).jobs)

  trusts = [
    for service in var.trusted_services : {
      Effect    = "Allow"
      Action    = "sts:AssumeRole"
      Principal = { Service = service }
    }
  ]
}

resource "aws_iam_role" "job" {
  for_each = toset(local.jobs)
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
  for_each = toset(local.jobs)
  name     = "run"
  role     = aws_iam_role.job[each.key].id
  policy   = module.rights.policies[each.key]
}
