# What each job may do, read from the policies. No provider, no network.
variables {
  bucket_arn = "arn:aws:s3:::rollmill-test"
  prefix     = "runs"
  role_arns  = ["arn:aws:iam::111122223333:role/rollmill-rollout"]
}

run "rollout_cannot_read_secrets" {
  command = plan

  assert {
    condition = anytrue([
      for s in jsondecode(output.policies["rollout"]).Statement :
      s.Effect == "Deny" && contains(s.Resource, "arn:aws:s3:::rollmill-test/runs/*/tables/task_secrets/*")
    ])
    error_message = "nothing denies rollout the hidden tests"
  }
  assert {
    condition = alltrue(flatten([
      for job in ["rollout", "train", "evaluate", "endpoint"] : [
        for s in jsondecode(output.policies[job]).Statement : [
          for r in s.Resource : !can(regex("task_secrets|candidates|admissions|rejections|tables/\\*", r))
        ] if s.Effect == "Allow"
      ]
    ]))
    error_message = "a job that needs no secrets is allowed a table that holds references or hidden tests"
  }
}

run "nobody_reads_chunks_of_others_or_tags_what_stays" {
  command = plan

  assert {
    condition = alltrue(flatten([
      for job in keys(output.jobs) : [
        for other in setsubtract(keys(output.jobs), [job]) : anytrue([
          for s in jsondecode(output.policies[job]).Statement :
          s.Effect == "Deny" && contains(s.Resource, "arn:aws:s3:::rollmill-test/runs/*/control/${other}*/chunks/*")
        ])
      ]
    ]))
    error_message = "a job reads rows of another before they are committed, hidden tests among them"
  }
  assert {
    condition = alltrue(flatten([
      for job, policy in output.policies : [
        for s in jsondecode(policy).Statement : [
          for r in s.Resource : endswith(r, "/chunks/*")
        ] if s.Effect == "Allow" && contains(s.Action, "s3:PutObjectTagging")
      ]
    ]))
    error_message = "a job may tag a committed part for removal"
  }
}

run "jobs_write_only_their_own_tables_and_delete_nothing" {
  command = plan

  assert {
    condition = alltrue(flatten([
      for job, policy in output.policies : [
        for s in jsondecode(policy).Statement : [
          for a in s.Action : !can(regex("Delete|\\*", a))
        ] if s.Effect == "Allow"
      ]
    ]))
    error_message = "a job may delete, or may do everything"
  }
  assert {
    condition = alltrue(flatten([
      for job, policy in output.policies : [
        for s in jsondecode(policy).Statement : [
          for r in s.Resource : !strcontains(r, "/tables/tasks/") || job == "verify"
        ] if s.Sid == "Write"
      ]
    ]))
    error_message = "another job than verify writes tasks"
  }
  assert {
    condition = anytrue([
      for s in jsondecode(output.bucket_policy).Statement :
      s.Sid == "PartsStay" && s.Effect == "Deny" && contains(flatten([s.Action]), "s3:DeleteObject")
    ])
    error_message = "the bucket lets jobs delete"
  }
}

run "records_are_created_once" {
  command = plan

  assert {
    condition = anytrue([
      for s in jsondecode(output.bucket_policy).Statement :
      s.Effect == "Deny" && s.Principal == "*" && s.Action == "s3:PutObject"
      && try(s.Condition.Null["s3:if-none-match"], "") == "true"
      && contains(s.Resource, "arn:aws:s3:::rollmill-test/runs/*/tables/*")
      && contains(s.Resource, "arn:aws:s3:::rollmill-test/runs/*/control/*")
      if s.Sid == "CreateOnly"
    ])
    error_message = "an object below tables/ or control/ could be overwritten"
  }
}

run "a_key_of_ones_own" {
  command = plan
  variables {
    kms_key_arn = "arn:aws:kms:eu-west-1:111122223333:key/k"
  }
  assert {
    condition = alltrue([
      for job, policy in output.policies :
      anytrue([for s in jsondecode(policy).Statement : s.Sid == "Key" && contains(s.Resource, var.kms_key_arn)])
    ])
    error_message = "jobs cannot use the key"
  }
}

run "runs_directly_in_the_bucket" {
  command = plan
  variables {
    prefix = ""
  }
  assert {
    condition     = strcontains(output.policies["rollout"], "arn:aws:s3:::rollmill-test/*/tables/tasks/*")
    error_message = "rollout cannot read tasks"
  }
}
