import { type FileHandle, mkdir, open, readFile, stat } from 'node:fs/promises'
import { join, relative, resolve, sep } from 'node:path'
import { z } from 'zod'
import { sha256 } from '../../core/models/file-hash.js'
import type { BatchInput } from './batch-inputs.js'
import { sameNameKey } from './result-names.js'

const journalName = 'journal.jsonl'

const lineSchema = z.object({
  state: z.enum(['started', 'finished']),
  /** Relative to the folder of the results, so that both may move together. */
  input: z.string(),
  /** All other options that affect the results, as one string. */
  options: z.string(),
  /** Paths of the results below the folder, by stem. */
  outputs: z.record(z.string(), z.string()),
  /** Facts of a finished song. */
  source: z.object({ bytes: z.number(), modifiedAt: z.number(), sha256: z.string() }).optional(),
  resultBytes: z.record(z.string(), z.number()).optional(),
})

type Line = z.infer<typeof lineSchema>

export type Outputs = Record<string, string>

/**
 * Journal of a folder of results. A song's first line, written before its first result gets its name, reserves the
 * names for this song; the second follows its last result. A song is finished only with a second line, and only while
 * its results have their sizes and its file is the same.
 */
export class BatchJournal {
  readonly #folder: string
  readonly #options: string
  readonly #file: FileHandle
  readonly #finished = new Map<string, Line>()
  /** Inputs by name of a result, as given by `sameNameKey`. */
  readonly #owners = new Map<string, string>()
  readonly #outputs = new Map<string, Outputs>()

  private constructor(folder: string, options: string, file: FileHandle) {
    this.#folder = folder
    this.#options = options
    this.#file = file
  }

  /**
   * @param folder folder of the results
   * @param options options that affect the results; with others, songs are done again
   */
  static async open(folder: string, ownFolder: string, options: string): Promise<BatchJournal> {
    await mkdir(ownFolder, { recursive: true })
    const path = join(ownFolder, journalName)
    const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return ''
      throw error
    })
    const journal = new BatchJournal(folder, options, await open(path, 'a'))
    for (const line of text.split('\n')) journal.#read(line)
    // A line that was cut off by a crash must not swallow the next one.
    if (text !== '' && !text.endsWith('\n')) await journal.#file.write('\n')
    return journal
  }

  /** Whether an earlier run made this file. */
  isResult(path: string): boolean {
    return this.#owners.has(sameNameKey(this.#relative(path)))
  }

  /** Absolute paths of the results of a finished song; `undefined` if it must be done (again). */
  async finished(input: BatchInput): Promise<Outputs | undefined> {
    const line = this.#finished.get(this.#relative(input.path))
    if (!line?.source || !line.resultBytes) return undefined
    const { source, outputs, resultBytes } = line
    if (source.bytes !== input.bytes) return undefined
    for (const [stem, path] of Object.entries(outputs)) {
      const found = await stat(resolve(this.#folder, path)).catch(() => undefined)
      if (found?.size !== resultBytes[stem]) return undefined
    }
    // Copies and checkouts change a file's time, but not its content.
    if (source.modifiedAt !== input.modifiedAt && source.sha256 !== (await sha256(input.path))) return undefined
    return this.#absolute(outputs)
  }

  /**
   * Reserves paths for the results of a song: its earlier ones, or else those of the first number with which none
   * belongs to another song.
   *
   * @param namesOf relative paths by stem, for a number to add to the names (0: none)
   * @returns absolute paths; in `unclaimed` those that no earlier run has made for it
   */
  reserve(input: BatchInput, namesOf: (number: number) => Outputs): { outputs: Outputs; unclaimed: string[] } {
    const owner = this.#relative(input.path)
    const known = this.#outputs.get(owner)
    if (known) return { outputs: this.#absolute(known), unclaimed: [] }
    for (let number = 0; ; number++) {
      const outputs = namesOf(number)
      const names = Object.values(outputs)
      const owners = names.map((name) => this.#owners.get(sameNameKey(name)))
      if (owners.some((other) => other !== undefined && other !== owner)) continue
      for (const name of names) this.#owners.set(sameNameKey(name), owner)
      const unclaimed = names.filter((_name, index) => owners[index] === undefined)
      return { outputs: this.#absolute(outputs), unclaimed: unclaimed.map((name) => resolve(this.#folder, name)) }
    }
  }

  /** After this resolves, the names belong to this song, also in later runs. */
  async start(input: BatchInput, outputs: Outputs): Promise<void> {
    await this.#write({ state: 'started', ...this.#of(input, outputs) })
  }

  /** After this resolves, the song is finished, even if the power fails. */
  async finish(input: BatchInput, outputs: Outputs, facts: { sha256: string; resultBytes: Record<string, number> }) {
    const { bytes, modifiedAt } = input
    await this.#write({
      state: 'finished',
      ...this.#of(input, outputs),
      source: { bytes, modifiedAt, sha256: facts.sha256 },
      resultBytes: facts.resultBytes,
    })
  }

  async close(): Promise<void> {
    await this.#file.close()
  }

  #read(text: string): void {
    const line = parsed(text)
    if (!line) return
    for (const path of Object.values(line.outputs)) this.#owners.set(sameNameKey(path), line.input)
    if (line.options !== this.#options) return
    this.#outputs.set(line.input, line.outputs)
    if (line.state === 'finished') this.#finished.set(line.input, line)
    else this.#finished.delete(line.input)
  }

  async #write(line: Line): Promise<void> {
    const text = JSON.stringify(line)
    await this.#file.appendFile(`${text}\n`)
    await this.#file.sync()
    this.#read(text)
  }

  #of(input: BatchInput, outputs: Outputs): Pick<Line, 'input' | 'options' | 'outputs'> {
    const relativeOutputs = Object.entries(outputs).map(([stem, path]) => [stem, this.#relative(path)] as const)
    return { input: this.#relative(input.path), options: this.#options, outputs: Object.fromEntries(relativeOutputs) }
  }

  #relative(path: string): string {
    return relative(this.#folder, path).split(sep).join('/')
  }

  #absolute(outputs: Outputs): Outputs {
    return Object.fromEntries(Object.entries(outputs).map(([stem, path]) => [stem, resolve(this.#folder, path)]))
  }
}

/** `undefined` for a line that a crash cut off. */
function parsed(text: string): Line | undefined {
  try {
    return lineSchema.safeParse(JSON.parse(text)).data
  } catch {
    return undefined
  }
}
