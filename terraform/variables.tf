variable "name" {
  description = "Name of everything that is made, and of the bucket unless bucket_name says otherwise."
  type        = string
  default     = "rollmill"
  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{1,30}[a-z0-9]$", var.name))
    error_message = "name must be 3 to 32 lower-case letters, digits and dashes, beginning with a letter."
  }
}

variable "bucket_name" {
  description = "Name of the bucket. Bucket names are global: take one that nobody has."
  type        = string
  default     = null
}

variable "prefix" {
  description = "Runs lie below this prefix, one folder each: s3://BUCKET/PREFIX/RUN. Empty: directly in the bucket."
  type        = string
  default     = "runs"
  validation {
    condition     = var.prefix == trim(var.prefix, "/")
    error_message = "prefix must not begin or end with a slash."
  }
}

variable "kms_key_arn" {
  description = "Key that encrypts objects. Null: a key that S3 itself holds."
  type        = string
  default     = null
}

variable "abort_uploads_days" {
  description = "Days after which parts of an upload that nobody completed are removed."
  type        = number
  default     = 7
}

variable "chunk_days" {
  description = "Days after which checkpoints inside shards are removed. `rollmill gc` removes those of sealed stages sooner. A shard that is older and unfinished begins anew."
  type        = number
  default     = 30
  validation {
    condition     = var.chunk_days >= 7
    error_message = "chunk_days must be at least 7: a run may rest over a weekend."
  }
}

variable "old_version_days" {
  description = "Days for which deleted and overwritten objects can be brought back."
  type        = number
  default     = 30
}

variable "force_destroy" {
  description = "Whether `terraform destroy` removes a bucket that is not empty."
  type        = bool
  default     = false
}

variable "trusted_services" {
  description = "Services whose tasks take the roles, such as ecs-tasks.amazonaws.com for AWS Batch."
  type        = list(string)
  default     = ["ecs-tasks.amazonaws.com"]
}

variable "oidc" {
  description = "The OIDC provider of an EKS cluster and the namespace of the jobs: service account `rollmill-JOB` takes the role of JOB. Null: there is none."
  type = object({
    provider_arn = string
    issuer       = string
    namespace    = string
  })
  default = null
}

variable "batch" {
  description = "AWS Batch queues with CPU and GPU machines. Null: none are made. Sandboxes need namespaces, so the machines are EC2, not Fargate."
  type = object({
    subnets            = list(string)
    security_groups    = list(string)
    instance_profile   = string
    cpu_instance_types = optional(list(string), ["m7a", "c7a"])
    gpu_instance_types = optional(list(string), ["g6", "p5"])
    max_cpu_vcpus      = optional(number, 512)
    max_gpu_vcpus      = optional(number, 192)
    spot               = optional(bool, true)
  })
  default = null
}

variable "images" {
  description = "Images of the jobs: `cpu` for all but training and serving, `gpu` for those two."
  type = object({
    cpu = string
    gpu = string
  })
  default = {
    cpu = "rollmill:latest"
    gpu = "rollmill-gpu:latest"
  }
}

variable "tags" {
  description = "Tags of everything that is made."
  type        = map(string)
  default     = {}
}
