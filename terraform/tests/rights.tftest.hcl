# What each job may do, read from the policies that would be made. The provider is mocked: nothing is made and nothing is asked.
mock_provider "aws" {
  mock_resource "aws_s3_bucket" {
    defaults = {
      id     = "rollmill-test"
      bucket = "rollmill-test"
      arn    = "arn:aws:s3:::rollmill-test"
    }
  }
  mock_resource "aws_iam_role" {
    defaults = {
      id  = "role"
      arn = "arn:aws:iam::111122223333:role/rollmill-job"
    }
  }
}

run "rollout_cannot_read_secrets" {
  command = apply

  assert {
    condition = anytrue([
      for s in jsondecode(aws_iam_role_policy.job["rollout"].policy).Statement :
      s.Effect == "Deny" && contains(flatten([s.Resource]), "arn:aws:s3:::rollmill-test/runs/*/tables/task_secrets/*")
    ])
    error_message = "nothing denies rollout the hidden tests"
  }
  assert {
    condition = alltrue(flatten([
      for s in jsondecode(aws_iam_role_policy.job["rollout"].policy).Statement : [
        for r in flatten([s.Resource]) : !can(regex("task_secrets|candidates|admissions|rejections", r))
      ] if s.Effect == "Allow"
    ]))
    error_message = "rollout is allowed a table that holds references or hidden tests"
  }
  assert {
    condition = alltrue(flatten([
      for job in ["rollout", "train", "evaluate", "endpoint"] : [
        for s in jsondecode(aws_iam_role_policy.job[job].policy).Statement : [
          for r in flatten([s.Resource]) : !strcontains(r, "/tables/*")
        ] if s.Effect == "Allow"
      ]
    ]))
    error_message = "a job that needs no secrets is allowed all tables"
  }
}

run "jobs_write_only_their_own_tables_and_delete_nothing" {
  command = apply

  assert {
    condition = alltrue(flatten([
      for job in keys(local.jobs) : [
        for s in jsondecode(aws_iam_role_policy.job[job].policy).Statement : [
          for a in flatten([s.Action]) : !can(regex("Delete|\\*", a))
        ] if s.Effect == "Allow"
      ]
    ]))
    error_message = "a job may delete, or may do everything"
  }
  assert {
    condition = alltrue([
      for job in keys(local.jobs) : job == "verify" || !contains(local.jobs[job].writes, "tables/tasks/*")
    ])
    error_message = "another job than verify writes tasks"
  }
}

run "records_are_created_once" {
  command = apply

  assert {
    condition = anytrue([
      for s in jsondecode(aws_s3_bucket_policy.runs.policy).Statement :
      s.Effect == "Deny" && s.Principal == "*" && s.Action == "s3:PutObject"
      && try(s.Condition.Null["s3:if-none-match"], "") == "true"
      && contains(flatten([s.Resource]), "arn:aws:s3:::rollmill-test/runs/*/tables/*")
      && contains(flatten([s.Resource]), "arn:aws:s3:::rollmill-test/runs/*/control/*")
    ])
    error_message = "an object below tables/ or control/ could be overwritten"
  }
}

run "a_cluster_gives_roles_to_service_accounts" {
  command = apply
  variables {
    oidc = {
      provider_arn = "arn:aws:iam::111122223333:oidc-provider/oidc.eks.example/id/X"
      issuer       = "https://oidc.eks.example/id/X"
      namespace    = "training"
    }
  }
  assert {
    condition = anytrue([
      for s in jsondecode(aws_iam_role.job["score"].assume_role_policy).Statement :
      try(s.Condition.StringEquals["oidc.eks.example/id/X:sub"], "") == "system:serviceaccount:training:rollmill-score"
    ])
    error_message = "the service account rollmill-score cannot take its role"
  }
}

run "queues_are_made_when_asked_for" {
  command = apply
  variables {
    batch = {
      subnets          = ["subnet-1"]
      security_groups  = ["sg-1"]
      instance_profile = "arn:aws:iam::111122223333:instance-profile/batch"
    }
  }
  assert {
    condition     = toset(keys(aws_batch_job_queue.jobs)) == toset(["cpu", "gpu"])
    error_message = "there is no queue of each kind"
  }
  assert {
    condition = alltrue([
      for job, d in aws_batch_job_definition.job :
      jsondecode(d.container_properties).readonlyRootFilesystem && jsondecode(d.container_properties).user != "0"
    ])
    error_message = "a container is root, or may write into its image"
  }
}

run "none_are_made_otherwise" {
  command = apply
  assert {
    condition     = length(aws_batch_job_queue.jobs) == 0 && length(aws_batch_job_definition.job) == 0
    error_message = "queues were made that nobody asked for"
  }
}
