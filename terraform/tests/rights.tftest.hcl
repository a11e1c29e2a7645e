# Roles and queues. The provider is mocked: nothing is made and nothing is asked. What policies say is tested in modules/rights.
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

run "roles_have_the_policies_of_their_jobs" {
  command = apply
  assert {
    condition = alltrue([
      for job, of in aws_iam_role_policy.job :
      strcontains(of.policy, "arn:aws:s3:::rollmill-test/runs/*/run.toml") && of.policy == module.rights.policies[job]
    ])
    error_message = "a role has not its own policy"
  }
  assert {
    condition     = strcontains(aws_s3_bucket_policy.runs.policy, "CreateOnly")
    error_message = "the bucket has not its policy"
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
  assert {
    condition = alltrue([
      for job, d in aws_batch_job_definition.job :
      jsondecode(d.container_properties).privileged == contains(["verify", "rollout", "score"], job)
    ])
    error_message = "a job that opens no sandbox is privileged, or one that does is not"
  }
}

run "none_are_made_otherwise" {
  command = apply
  assert {
    condition     = length(aws_batch_job_queue.jobs) == 0 && length(aws_batch_job_definition.job) == 0
    error_message = "queues were made that nobody asked for"
  }
}
