# Who may do what is worked out without a provider, in modules/rights.
module "rights" {
  source      = "./modules/rights"
  bucket_arn  = aws_s3_bucket.runs.arn
  prefix      = var.prefix
  kms_key_arn = var.kms_key_arn
  role_arns   = [for role in aws_iam_role.job : role.arn]
}

resource "aws_s3_bucket_policy" "runs" {
  bucket     = aws_s3_bucket.runs.id
  depends_on = [aws_s3_bucket_public_access_block.runs]
  policy     = module.rights.bucket_policy
}
