output "bucket" {
  description = "The bucket's name."
  value       = aws_s3_bucket.runs.bucket
}

output "address" {
  description = "Where runs lie: add a name of your own, and give it to `rollmill init`."
  value       = var.prefix == "" ? "s3://${aws_s3_bucket.runs.bucket}" : "s3://${aws_s3_bucket.runs.bucket}/${var.prefix}"
}

output "role_arns" {
  description = "The role of each job."
  value       = { for job, role in aws_iam_role.job : job => role.arn }
}

output "queues" {
  description = "ARNs of the Batch queues, `cpu` and `gpu`; empty without batch."
  value       = { for kind, queue in aws_batch_job_queue.jobs : kind => queue.arn }
}
