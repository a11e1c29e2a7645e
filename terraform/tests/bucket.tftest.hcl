mock_provider "aws" {
  mock_resource "aws_s3_bucket" {
    defaults = {
      id     = "rollmill-test"
      bucket = "rollmill-test"
      arn    = "arn:aws:s3:::rollmill-test"
    }
  }
}

run "closed_encrypted_and_versioned" {
  command = apply
  assert {
    condition = alltrue([
      aws_s3_bucket_public_access_block.runs.block_public_acls,
      aws_s3_bucket_public_access_block.runs.block_public_policy,
      aws_s3_bucket_public_access_block.runs.ignore_public_acls,
      aws_s3_bucket_public_access_block.runs.restrict_public_buckets,
    ])
    error_message = "something of the bucket may become public"
  }
  assert {
    condition     = aws_s3_bucket_versioning.runs.versioning_configuration[0].status == "Enabled"
    error_message = "damaged objects could not be brought back"
  }
  assert {
    condition     = output.address == "s3://rollmill/runs"
    error_message = "the address is not that of the runs"
  }
}

run "uploads_and_chunks_do_not_pile_up" {
  command = apply
  assert {
    condition = anytrue([
      for r in aws_s3_bucket_lifecycle_configuration.runs.rule :
      try(r.abort_incomplete_multipart_upload[0].days_after_initiation, 0) == 7
    ])
    error_message = "abandoned uploads stay for ever"
  }
  assert {
    condition = anytrue([
      for r in aws_s3_bucket_lifecycle_configuration.runs.rule : r.id == "old-chunks" && try(r.expiration[0].days, 0) == 30
    ])
    error_message = "chunks stay for ever"
  }
}

run "a_key_of_ones_own" {
  command = apply
  variables {
    kms_key_arn = "arn:aws:kms:eu-west-1:111122223333:key/k"
  }
  assert {
    condition = anytrue([
      for s in jsondecode(aws_iam_role_policy.job["train"].policy).Statement : try(s.Sid, "") == "Key"
    ])
    error_message = "jobs cannot use the key"
  }
}

run "wrong_prefixes_are_refused" {
  command = plan
  variables {
    prefix = "/runs/"
  }
  expect_failures = [var.prefix]
}

run "wrong_names_are_refused" {
  command = plan
  variables {
    name = "Rollmill_1"
  }
  expect_failures = [var.name]
}

run "chunks_of_yesterday_stay" {
  command = plan
  variables {
    chunk_days = 1
  }
  expect_failures = [var.chunk_days]
}
