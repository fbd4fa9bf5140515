import { createWriteStream } from 'node:fs'
import { lstat, mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { json } from 'node:stream/consumers'
import { pipeline } from 'node:stream/promises'
import { claimCheckpointPrefix, stepFileKey, stepValueKey } from '../../job/checkpoint-keys.js'
import type { JobRecord } from '../../job/job.js'
import { maxRecordedCharacters, type StepRecord } from '../../job/step.js'
import { putCopy } from '../../ports/put-copy.js'
import type { InputFile, KeptStep, RunSteps, StepResult, StepState } from '../../ports/runner.js'
import { claimOf, type EndPatience, writeEnd } from './attempt-end.js'
import { leaseLost } from './heartbeat.js'
import type { SharedParts } from '../../engine-parts.js'

interface StepsPorts extends EndPatience, Pick<SharedParts, 'jobs' | 'blobs'> {
  job: JobRecord
  leaseMs: number
  /** How far the store's clock is ahead of this node's. */
  aheadMs: number
  /** The run's folder. */
  directory: string
  signal: AbortSignal
  /** Called before the first file is stored. */
  onFiles(): void
  /** Called with the job when a step was kept. The work up to a finished step is never repeated. */
  onKept(step: StepState, job: JobRecord): void
  throughOutage<Result>(work: () => Promise<Result>): Promise<Result>
}

export type AttemptSteps = ReturnType<typeof attemptSteps>

/** Keeps the steps of an attempt: values in the job's record, as long as its claim holds, and files as blobs. */
export function attemptSteps(ports: StepsPorts) {
  const { job, jobs, blobs, leaseMs, aheadMs, directory, signal, onFiles, onKept, throughOutage } = ports
  const records = new Map(job.steps.map((step) => [step.name, step]))
  return {
    /** The kept steps, for the order, with times by this node's clock, which the run uses; the job uses the store's. */
    get kept(): StepState[] {
      return job.steps.map((step) => (step.until === null ? step : { ...step, until: step.until - aheadMs }))
    },
    save,
    finished,
  } satisfies RunSteps & { kept: StepState[] }

  async function save(step: KeptStep): Promise<Record<string, InputFile>> {
    const stored = await store(step)
    const files = Object.fromEntries(Object.entries(stored).map(([name, { key, bytes }]) => [name, { key, bytes }]))
    const record: StepRecord = { ...step, ...(await recorded(step)), files }
    // The store sets `until` by its own clock: this node's may have been set since the claim.
    const wait = step.until === null ? {} : { waitMs: step.until - Date.now() }
    // Idempotent: a repeated write has no further effect.
    const written = await writeEnd(jobs, job, { kind: 'step', ...claimOf(job), leaseMs, step: record, ...wait }, ports)
    if (!written) throw leaseLost()
    records.set(step.name, record)
    onKept(step, written)
    return Object.fromEntries(Object.entries(stored).map(([name, { path, bytes }]) => [name, { path, bytes }]))
  }

  async function finished(name: string): Promise<StepResult | undefined> {
    const record = records.get(name)
    const files: Record<string, InputFile> = {}
    for (const [file, { key }] of Object.entries(record?.files ?? {})) {
      const found = await throughOutage(() => fetch(key, `kept-${name}`, file))
      if (!found) return undefined
      files[file] = found
    }
    if (record?.valueKey === undefined) return record && { value: record.value, files }
    const { valueKey } = record
    return await throughOutage(async () => {
      const blob = await blobs.get(valueKey, { signal, app: job.app })
      return blob && { value: await json(blob.body), files }
    })
  }

  /** The value, or if it is long, the key of a blob that contains it. */
  async function recorded({ name, value = null }: KeptStep): Promise<Pick<StepRecord, 'value' | 'valueKey'>> {
    const text = JSON.stringify(value)
    if (text.length <= maxRecordedCharacters) return { value }
    const valueKey = stepValueKey(claimCheckpointPrefix(job), name)
    onFiles()
    await throughOutage(() => blobs.put(valueKey, text, { signal, app: job.app }))
    return { value: null, valueKey }
  }

  async function store({ name, files }: KeptStep): Promise<Record<string, InputFile & { key: string }>> {
    const stored: Record<string, InputFile & { key: string }> = {}
    for (const [file, { path }] of Object.entries(files)) {
      onFiles()
      // lstat: a link could store a file from outside the run.
      const facts = await lstat(path)
      if (!facts.isFile()) throw new Error(`${path} is not a regular file`)
      const key = stepFileKey(claimCheckpointPrefix(job), name, file)
      // Not `putFile`, which moves the file away: later steps read it here.
      await throughOutage(() => putCopy(blobs, key, path, { signal, app: job.app }))
      stored[file] = { path, bytes: facts.size, key }
    }
    return stored
  }

  async function fetch(key: string, folder: string, name: string): Promise<InputFile | undefined> {
    const blob = await blobs.get(key, { signal, app: job.app })
    if (!blob) return undefined
    await mkdir(join(directory, folder), { recursive: true })
    const path = join(directory, folder, name)
    const file = createWriteStream(path, { mode: 0o600 })
    await pipeline(blob.body, file, { signal })
    return { path, bytes: file.bytesWritten }
  }
}
