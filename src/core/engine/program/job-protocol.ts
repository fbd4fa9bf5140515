import { setTimeout as delay } from 'node:timers/promises'
import { z } from 'zod'
import { StemworkError } from '../errors.js'
import type { ProgramContext } from './program-options.js'

const lookMs = 50

const messageSchema = z.union([
  z.strictObject({ progress: z.number() }),
  z.strictObject({ detail: z.string().min(1), value: z.unknown() }),
  /** A file in the run's folder to keep for the next attempt. */
  z.strictObject({ keep: z.string().min(1) }),
  /** Message for the client; the program then ends with an exit code other than 0. */
  z.strictObject({ badInput: z.string().min(1) }),
])

/** Content of the file that STEMWORK_JOB names, from which the program reads its job. */
export function jobFile({ jobId, params, inputs, directory, checkpoint, outputs = [], outputPath }: ProgramContext) {
  return {
    jobId,
    params,
    inputs,
    outputs: Object.fromEntries(outputs.map((name) => [name, outputPath?.(name)])),
    directory,
    checkpoint: checkpoint?.parts.map(({ path }) => path) ?? [],
  }
}

/** Acts on the lines of JSON in a program's output. */
export function messageReader(context: ProgramContext) {
  let keeping = Promise.resolve()
  let failure: StemworkError | undefined

  async function keep(path: string): Promise<void> {
    const { checkpoint, signal } = context
    // A part may be kept only when the previous one is stored.
    if (!checkpoint) return
    while (checkpoint.isOn && !checkpoint.isDue() && !isOver) await delay(lookMs, undefined, { signal })
    if (checkpoint.isDue()) await checkpoint.keep(path)
  }

  let isOver = false
  return {
    /** Returns whether the line was a message. */
    read(line: string): boolean {
      const message = line.startsWith('{') ? messageSchema.safeParse(parsed(line)).data : undefined
      if (!message) return false
      if ('progress' in message) context.progress(message.progress)
      else if ('detail' in message) context.detail?.(message.detail, message.value)
      else if ('badInput' in message)
        failure = new StemworkError('BAD_INPUT', message.badInput, { reason: 'decode_failed' })
      else keeping = keeping.then(() => keep(message.keep)).catch(() => undefined)
      return true
    },
    get failure(): StemworkError | undefined {
      return failure
    },
    /** Call once the program has ended: drops parts that still wait to be kept. */
    async finished(): Promise<void> {
      isOver = true
      await keeping
    },
  }
}

function parsed(line: string): unknown {
  try {
    return JSON.parse(line)
  } catch {
    return undefined
  }
}
