import { readFile } from 'node:fs/promises'
import { afterEach, expect, test } from 'vitest'
import { z } from 'zod'
import { command as workerCommand } from '../../src/cli/commands/worker.js'
import { type Service, startService } from '../http/harness.js'

// The fields of KEDA's resources and of its Prometheus trigger, from its documentation of version 2.15:
// https://keda.sh/docs/2.15/reference/scaledobject-spec/, https://keda.sh/docs/2.15/reference/scaledjob-spec/,
// https://keda.sh/docs/2.15/scalers/prometheus/. Any other field is refused.
const count = z.int().nonnegative()
const trigger = z.strictObject({
  type: z.literal('prometheus'),
  name: z.string().optional(),
  metadata: z.strictObject({
    serverAddress: z.url(),
    query: z.string(),
    threshold: z.string().regex(/^\d+(\.\d+)?$/),
    activationThreshold: z
      .string()
      .regex(/^\d+(\.\d+)?$/)
      .optional(),
  }),
})
const metadata = z.strictObject({ name: z.string().regex(/^[a-z0-9-]+$/) })
const container = z.looseObject({ name: z.string(), image: z.string(), args: z.array(z.string()) })
const pod = z.looseObject({ containers: z.array(container).length(1), terminationGracePeriodSeconds: z.int() })
const scaledObject = z.strictObject({
  apiVersion: z.literal('keda.sh/v1alpha1'),
  kind: z.literal('ScaledObject'),
  metadata,
  spec: z.strictObject({
    scaleTargetRef: z.strictObject({ name: z.string() }),
    pollingInterval: count,
    cooldownPeriod: count,
    minReplicaCount: count,
    maxReplicaCount: count,
    fallback: z.strictObject({ failureThreshold: count, replicas: count }),
    advanced: z.strictObject({
      horizontalPodAutoscalerConfig: z.strictObject({
        behavior: z.strictObject({ scaleDown: z.strictObject({ stabilizationWindowSeconds: count.max(3600) }) }),
      }),
    }),
    triggers: z.array(trigger).min(1),
  }),
})
const scaledJob = z.strictObject({
  apiVersion: z.literal('keda.sh/v1alpha1'),
  kind: z.literal('ScaledJob'),
  metadata,
  spec: z.strictObject({
    jobTargetRef: z.strictObject({
      parallelism: count,
      completions: count,
      backoffLimit: count,
      template: z.strictObject({ spec: pod.extend({ restartPolicy: z.enum(['Never', 'OnFailure']) }) }),
    }),
    pollingInterval: count,
    successfulJobsHistoryLimit: count,
    failedJobsHistoryLimit: count,
    minReplicaCount: count,
    maxReplicaCount: count,
    scalingStrategy: z.strictObject({ strategy: z.enum(['default', 'accurate', 'eager']) }),
    triggers: z.array(trigger).min(1),
  }),
})
const deployment = z.looseObject({
  apiVersion: z.literal('apps/v1'),
  kind: z.literal('Deployment'),
  metadata,
  spec: z.looseObject({ template: z.looseObject({ spec: pod }) }),
})

let service: Service | undefined
afterEach(() => service?.close())

async function read<Schema extends z.ZodType>(name: string, schema: Schema): Promise<z.output<Schema>> {
  return schema.parse(JSON.parse(await readFile(new URL(`../../examples/kubernetes/${name}`, import.meta.url), 'utf8')))
}

test('the resources have the fields of Kubernetes and KEDA, name each other, and use known options', async () => {
  const [worker, object, job] = [
    await read('worker.json', deployment),
    await read('scaled-object.json', scaledObject),
    await read('scaled-job.json', scaledJob),
  ]
  expect(object.spec.scaleTargetRef.name).toBe(worker.metadata.name)
  for (const { containers, terminationGracePeriodSeconds } of [
    worker.spec.template.spec,
    job.spec.jobTargetRef.template.spec,
  ]) {
    const [command, ...args] = containers[0]?.args ?? []
    expect(command).toBe('worker')
    for (const option of args.filter((text) => text.startsWith('--')))
      expect(Object.keys(workerCommand.options)).toContain(option.slice(2))
    // More time than running jobs get, plus that for keeping and handing them back.
    expect(terminationGracePeriodSeconds).toBeGreaterThan(30)
  }
})

test('the queries use metrics that the service has', async () => {
  service = await startService({ worker: false, http: { metrics: true } })
  const metrics = await (await fetch(`${service.base}/metrics`)).text()
  const triggers = [
    ...(await read('scaled-object.json', scaledObject)).spec.triggers,
    ...(await read('scaled-job.json', scaledJob)).spec.triggers,
  ]
  const names = triggers.flatMap(({ metadata: { query } }) => query.match(/stemwork_\w+/g) ?? [])
  expect(names.length).toBeGreaterThan(2)
  for (const name of names) expect(metrics).toContain(`# TYPE ${name} gauge`)
})
