# A bucket with one role a job, for an EKS cluster and for AWS Batch.
terraform {
  required_version = ">= 1.9"
  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 6.0, < 7.0"
    }
  }
}

provider "aws" {
  region = "eu-west-1"
}

module "rollmill" {
  source = "../.."

  name        = "rollmill"
  bucket_name = "example-team-rollmill"

  oidc = {
    provider_arn = "arn:aws:iam::111122223333:oidc-provider/oidc.eks.eu-west-1.amazonaws.com/id/EXAMPLE"
    issuer       = "https://oidc.eks.eu-west-1.amazonaws.com/id/EXAMPLE"
    namespace    = "training"
  }

  batch = {
    subnets          = ["subnet-0123456789abcdef0"]
    security_groups  = ["sg-0123456789abcdef0"]
    instance_profile = "arn:aws:iam::111122223333:instance-profile/ecsInstanceRole"
  }
}

output "address" {
  value = module.rollmill.address
}
