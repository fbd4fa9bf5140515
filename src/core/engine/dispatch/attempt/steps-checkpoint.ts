import { createHash } from 'node:crypto'
import { constants, createReadStream, createWriteStream } from 'node:fs'
import { lstat, mkdir, open, rename, rm, truncate } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { z } from 'zod'
import type { KeptPart, OutputFile, RunCheckpoint, WorkOrder, WorkResult } from '../../ports/runner.js'
import { partName } from '../../runner/stage-checkpoint.js'
import type { Step } from '../../workflow/workflow.js'

const noteSchema = z.discriminatedUnion('is', [
  /** The part with this number, kept by a step in progress. It replaces this part and all later ones. */
  z.object({ is: z.literal('part'), step: z.string(), work: z.string(), part: z.number().int().nonnegative() }),
  /** A finished step: the bytes of its outputs, one after another. */
  z.object({
    is: z.literal('step'),
    step: z.string(),
    work: z.string(),
    details: z.record(z.string(), z.unknown()),
    outputs: z.record(
      z.string(),
      z.object({
        fileName: z.string(),
        contentType: z.string(),
        downloadName: z.string().optional(),
        bytes: z.number().int().nonnegative(),
      }),
    ),
  }),
])

type Note = z.infer<typeof noteSchema>

/** At the end of each part: the length of the note before it. */
const lengthBytes = 4

/**
 * The checkpoint of a composed workflow: one chain of parts for all its steps. A part is either work of a step in
 * progress or the outputs of a finished step; a note at its end tells which. The next attempt skips finished steps and
 * resumes the step in progress at its last part. Like every checkpoint, it never fails the job.
 */
export class StepsCheckpoint {
  readonly #order: WorkOrder
  readonly #host: RunCheckpoint | undefined
  readonly #finished = new Map<string, { note: Extract<Note, { is: 'step' }>; path: string }>()
  readonly #parts = new Map<string, KeptPart[]>()
  readonly #startedAt = performance.now()
  #next: number
  #bytes = 0
  #isOn: boolean
  #storing: Promise<void> = Promise.resolve()

  private constructor(order: WorkOrder, host: RunCheckpoint | undefined) {
    this.#order = order
    this.#host = host
    this.#isOn = order.checkpoint !== undefined && host !== undefined
    this.#next = order.checkpoint?.parts.length ?? 0
  }

  /**
   * Reads the notes of earlier attempts' parts. Work of a part that cannot be read, and of those after it, is repeated.
   */
  static async open(order: WorkOrder, host: RunCheckpoint | undefined): Promise<StepsCheckpoint> {
    const opened = new StepsCheckpoint(order, host)
    try {
      for (const kept of order.checkpoint?.parts ?? []) await opened.#load(kept)
    } catch {
      opened.#isOn = false
    }
    return opened
  }

  /**
   * The result of a step that an earlier attempt finished with this order; its files are put into the order's folder.
   */
  async finished(step: Step, order: WorkOrder): Promise<WorkResult | undefined> {
    const kept = this.#finished.get(step.name)
    if (kept?.note.work !== workOf(order)) return undefined
    const outputs: Record<string, OutputFile> = {}
    await mkdir(order.directory, { recursive: true })
    let start = 0
    try {
      for (const [index, [name, { bytes, ...facts }]] of Object.entries(kept.note.outputs).entries()) {
        const path = join(order.directory, `kept-${index}`)
        const source = bytes === 0 ? [] : createReadStream(kept.path, { start, end: start + bytes - 1 })
        await pipeline(source, createWriteStream(path, { mode: 0o600 }))
        outputs[name] = { path, bytes, ...facts }
        start += bytes
      }
    } catch {
      return undefined
    }
    return { outputs, details: kept.note.details }
  }

  /** What a step receives, and who stores what it keeps. */
  of(step: Step, order: WorkOrder): { order: WorkOrder; checkpoint: RunCheckpoint | undefined } {
    const limits = this.#order.checkpoint
    const host = this.#host
    if (!this.#isOn || !limits || !host) return { order, checkpoint: undefined }
    const work = workOf(order)
    const parts = this.#parts.get(JSON.stringify([step.name, work])) ?? []
    const store = async (part: number) => {
      const path = join(order.directory, partName(part))
      await this.#store(path, { is: 'part', step: step.name, work, part })
    }
    return { order: { ...order, checkpoint: { ...limits, parts } }, checkpoint: { store, handBack: host.handBack } }
  }

  /** Keeps the outputs of a step, unless it and the steps before it were quick. Does not wait until they are stored. */
  async keep(step: Step, order: WorkOrder, { outputs, details }: WorkResult): Promise<void> {
    const { afterMs = 0 } = this.#order.checkpoint ?? {}
    if (!this.#isOn || performance.now() - this.#startedAt < afterMs) return
    const path = join(this.#order.directory, `finished-${step.name}`)
    const note: Note = { is: 'step', step: step.name, work: workOf(order), details, outputs: {} }
    try {
      for (const [name, { path: from, ...facts }] of Object.entries(outputs)) {
        note.outputs[name] = facts
        await pipeline(createReadStream(from), createWriteStream(path, { flags: 'a', mode: 0o600 }))
      }
      // Not awaited: an unavailable blob store must not delay the steps.
      void this.#store(path, note)
    } catch {
      this.#isOn = false
      await rm(path, { force: true }).catch(() => undefined)
    }
  }

  /** One part at a time, in the order of the calls. Never rejects. */
  #store(path: string, note: Note): Promise<void> {
    this.#storing = this.#storing.then(async () => {
      if (!this.#isOn || !this.#host) return
      try {
        this.#bytes += (await lstat(path)).size
        if (this.#bytes > (this.#order.checkpoint?.maxBytes ?? 0)) throw new Error('the checkpoint is too large')
        await append(path, note)
        await rename(path, join(this.#order.directory, partName(this.#next)))
        await this.#host.store(this.#next++)
      } catch {
        this.#isOn = false
        await rm(path, { force: true }).catch(() => undefined)
      }
    })
    return this.#storing
  }

  async #load({ path, bytes }: KeptPart): Promise<void> {
    this.#bytes += bytes
    const { note, contentBytes } = await readNote(path, bytes)
    if (note.is === 'step') return void this.#finished.set(note.step, { note, path })
    await truncate(path, contentBytes)
    const key = JSON.stringify([note.step, note.work])
    const parts = (this.#parts.get(key) ?? []).slice(0, note.part)
    if (parts.length < note.part) throw new Error('a part of the step is missing')
    this.#parts.set(key, [...parts, { path, bytes: contentBytes }])
  }
}

/** Text that identifies the same work on the same inputs: those of the job and the outputs of earlier steps. */
function workOf({ workflow, settings, params, inputs }: WorkOrder): string {
  const sizes = Object.entries(inputs).map(([name, { bytes }]) => [name, bytes])
  return createHash('sha256')
    .update(JSON.stringify([workflow, settings, params, sizes]))
    .digest('hex')
}

async function append(path: string, note: Note): Promise<void> {
  const text = Buffer.from(JSON.stringify(note))
  const length = Buffer.alloc(lengthBytes)
  length.writeUInt32LE(text.length)
  // Follows no links: the workflow's code created the file.
  const file = await open(path, constants.O_WRONLY | constants.O_APPEND | constants.O_NOFOLLOW)
  try {
    await file.writeFile(Buffer.concat([text, length]))
  } finally {
    await file.close()
  }
}

async function readNote(path: string, bytes: number): Promise<{ note: Note; contentBytes: number }> {
  const file = await open(path)
  try {
    const end = Buffer.alloc(lengthBytes)
    await file.read(end, 0, lengthBytes, bytes - lengthBytes)
    const contentBytes = bytes - lengthBytes - end.readUInt32LE()
    if (contentBytes < 0) throw new Error('the part has no note')
    const text = Buffer.alloc(end.readUInt32LE())
    await file.read(text, 0, text.length, contentBytes)
    return { note: noteSchema.parse(JSON.parse(text.toString())), contentBytes }
  } finally {
    await file.close()
  }
}
