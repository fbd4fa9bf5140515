import { mkdtempSync, readFileSync } from 'node:fs'
import { mkdtemp, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { afterEach } from 'vitest'
import type { Runner, WorkOrder, WorkProgress, WorkResult } from '../../src/core/engine/ports/runner.js'
import type { Workflow } from '../../src/core/engine/workflow/workflow.js'

export const stagesModule = new URL('./fixtures/stages.mjs', import.meta.url).href

const folders: string[] = []
const runners: Runner[] = []

afterEach(async () => {
  await Promise.all(runners.splice(0).map((runner) => runner.close()))
  await Promise.all(folders.splice(0).map((folder) => rm(folder, { recursive: true, force: true })))
})

/** Closes the runner after the test. */
export function opened<Opened extends Runner>(runner: Opened): Opened {
  runners.push(runner)
  return runner
}

/** An order for the fixture's workflow, whose second stage does the named action. */
export function orderTo(action: string, changes: Partial<WorkOrder> = {}): WorkOrder {
  const directory = mkdtempSync(join(tmpdir(), 'stemwork-runner-'))
  folders.push(directory)
  return {
    jobId: 'job-1',
    workflow: 'test/stages',
    module: stagesModule,
    settings: {},
    params: { do: action },
    inputs: {},
    directory,
    limits: { maxAudioSeconds: 60 },
    ...changes,
  }
}

/**
 * An order for a run of the workflow, in its own folder within `folder`.
 *
 * @param files its input files, by the name of the param
 */
export async function orderOf(
  workflow: Workflow,
  files: Record<string, string>,
  folder: string,
  params: Record<string, unknown> = {},
): Promise<WorkOrder> {
  const order: WorkOrder = {
    jobId: 'job-1',
    workflow: workflow.id,
    module: workflow.module?.url ?? null,
    settings: workflow.module?.settings,
    params,
    inputs: {},
    directory: await mkdtemp(join(folder, 'run-')),
    limits: { maxAudioSeconds: 600 },
  }
  for (const [param, path] of Object.entries(files)) {
    const name = basename(path)
    order.params = { [param]: `https://example.org/${name}`, ...order.params }
    order.inputs[param] = { path, bytes: (await stat(path)).size, name }
  }
  return order
}

export interface OrderOptions {
  signal?: AbortSignal
  onProgress?(progress: WorkProgress): void
}

export function run(
  runner: Runner,
  order: WorkOrder,
  { signal = new AbortController().signal, onProgress = () => {} }: OrderOptions = {},
): Promise<WorkResult> {
  return runner.run(order, { signal, onProgress })
}

/** Runs the order until it reports the progress that `reached` accepts, then calls `then` with it. */
export function runUntil(
  runner: Runner,
  order: WorkOrder,
  reached: (progress: WorkProgress) => boolean,
  then: (progress: WorkProgress) => void,
  signal?: AbortSignal,
): Promise<WorkResult> {
  let done = false
  const onProgress = (progress: WorkProgress) => {
    if (done || !reached(progress)) return
    done = true
    then(progress)
  }
  return run(runner, order, signal ? { onProgress, signal } : { onProgress })
}

/** The error that the promise rejects with. */
export async function rejection(promise: Promise<unknown>): Promise<unknown> {
  return await promise.then(
    (value) => {
      throw new Error(`expected a rejection, got ${JSON.stringify(value)}`)
    },
    (error: unknown) => error,
  )
}

/** False also for a dead process that its parent has not yet reaped. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return process.platform !== 'linux' || !readFileSync(`/proc/${pid}/stat`, 'utf8').includes(') Z ')
  } catch {
    return false
  }
}

/** Resolves once the condition holds; fails the test if that takes longer than `limitMs`. */
export async function eventually(condition: () => boolean, limitMs = 5_000): Promise<void> {
  const end = performance.now() + limitMs
  while (!condition()) {
    if (performance.now() > end) throw new Error(`not within ${limitMs} ms: ${condition.toString()}`)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}
