# AWS Batch: a queue of CPU machines and one of GPU machines, and a definition for each job. An array job's index is the worker's
# shard (AWS_BATCH_JOB_ARRAY_INDEX).
locals {
  queues = var.batch == null ? {} : {
    cpu = { types = var.batch.cpu_instance_types, vcpus = var.batch.max_cpu_vcpus }
    gpu = { types = var.batch.gpu_instance_types, vcpus = var.batch.max_gpu_vcpus }
  }

  definitions = var.batch == null ? {} : {
    synthesize = { image = var.images.cpu, vcpus = 1, memory = 2048, gpus = 0, sandboxes = false }
    verify     = { image = var.images.cpu, vcpus = 2, memory = 4096, gpus = 0, sandboxes = true }
    rollout    = { image = var.images.cpu, vcpus = 2, memory = 4096, gpus = 0, sandboxes = true }
    score      = { image = var.images.cpu, vcpus = 2, memory = 4096, gpus = 0, sandboxes = true }
    evaluate   = { image = var.images.cpu, vcpus = 1, memory = 4096, gpus = 0, sandboxes = false }
    train      = { image = var.images.gpu, vcpus = 8, memory = 61440, gpus = 1, sandboxes = false }
    endpoint   = { image = var.images.gpu, vcpus = 8, memory = 30720, gpus = 1, sandboxes = false }
  }
}

resource "aws_batch_compute_environment" "jobs" {
  for_each = local.queues
  name     = "${var.name}-${each.key}"
  type     = "MANAGED"
  tags     = var.tags

  compute_resources {
    type                = var.batch.spot ? "SPOT" : "EC2"
    allocation_strategy = var.batch.spot ? "SPOT_PRICE_CAPACITY_OPTIMIZED" : "BEST_FIT_PROGRESSIVE"
    instance_type       = each.value.types
    instance_role       = var.batch.instance_profile
    min_vcpus           = 0
    max_vcpus           = each.value.vcpus
    subnets             = var.batch.subnets
    security_group_ids  = var.batch.security_groups
    tags                = var.tags
  }
}

resource "aws_batch_job_queue" "jobs" {
  for_each = local.queues
  name     = "${var.name}-${each.key}"
  state    = "ENABLED"
  priority = 1
  tags     = var.tags

  compute_environment_order {
    order               = 1
    compute_environment = aws_batch_compute_environment.jobs[each.key].arn
  }
}

resource "aws_batch_job_definition" "job" {
  for_each = local.definitions
  name     = "${var.name}-${each.key}"
  type     = "container"
  tags     = var.tags

  container_properties = jsonencode({
    image      = each.value.image
    command    = [each.key]
    jobRoleArn = aws_iam_role.job[each.key].arn
    user       = "65532"
    resourceRequirements = concat(
      [
        { type = "VCPU", value = tostring(each.value.vcpus) },
        { type = "MEMORY", value = tostring(each.value.memory) },
      ],
      each.value.gpus == 0 ? [] : [{ type = "GPU", value = tostring(each.value.gpus) }],
    )
    readonlyRootFilesystem = true
    environment = [
      { name = "ROLLMILL_TAG_CHUNKS", value = "1" },
      { name = "AWS_REGION", value = aws_s3_bucket.runs.region },
    ]
    # Sandboxes open user namespaces, which Docker's default profile forbids, and Batch lets a definition choose no profile.
    privileged = each.value.sandboxes
    # Checkpoints do not fit into memory: jobs that load them get a volume of the machine's disk, which takes over the image's /tmp.
    linuxParameters = each.value.gpus > 0 ? {} : {
      tmpfs = [{ containerPath = "/tmp", size = 2048, mountOptions = ["rw", "exec", "mode=1777"] }]
    }
    volumes     = each.value.gpus > 0 ? [{ name = "tmp", host = {} }] : []
    mountPoints = each.value.gpus > 0 ? [{ sourceVolume = "tmp", containerPath = "/tmp" }] : []
  })

  # As everywhere: 75 and 11 are begun again, and so is what was killed or a reclaimed machine took away; all else is final.
  retry_strategy {
    attempts = 5
    evaluate_on_exit {
      on_status_reason = "Host EC2*"
      action           = "RETRY"
    }
    evaluate_on_exit {
      on_exit_code = "75"
      action       = "RETRY"
    }
    evaluate_on_exit {
      on_exit_code = "11"
      action       = "RETRY"
    }
    evaluate_on_exit {
      on_exit_code = "137"
      action       = "RETRY"
    }
    evaluate_on_exit {
      on_exit_code = "*"
      action       = "EXIT"
    }
  }
}
