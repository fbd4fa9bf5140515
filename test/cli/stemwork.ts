import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { Writable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { runCommandLine } from '../../src/cli/program.js'

const main = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))

export interface Finished {
  status: number | null
  stdout: string
  stderr: string
}

/** A running `stemwork` process and what it has printed so far. */
export class Stemwork {
  readonly child: ChildProcess
  stdout = ''
  stderr = ''
  readonly #ended: Promise<Finished>

  constructor(args: readonly string[], cwd?: string, env: Record<string, string> = {}) {
    this.child = spawn(process.execPath, [main, ...args], {
      cwd,
      env: { ...process.env, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    this.child.stdout?.setEncoding('utf8').on('data', (text: string) => (this.stdout += text))
    this.child.stderr?.setEncoding('utf8').on('data', (text: string) => (this.stderr += text))
    this.#ended = once(this.child, 'close').then(([status]) => ({
      status: status as number | null,
      stdout: this.stdout,
      stderr: this.stderr,
    }))
  }

  finished(): Promise<Finished> {
    return this.#ended
  }

  /** Resolves with the match once the process has printed it. */
  async printed(stream: 'stdout' | 'stderr', pattern: RegExp): Promise<RegExpExecArray> {
    const source = this.child[stream]
    if (!source) throw new Error('The process has no such stream.')
    for (;;) {
      const match = pattern.exec(this[stream])
      if (match) return match
      const ended = await Promise.race([once(source, 'data').then(() => false), this.#ended.then(() => true)])
      if (ended && !pattern.test(this[stream]))
        throw new Error(`The process ended without printing ${pattern}. It printed: ${this.stdout}${this.stderr}`)
    }
  }

  kill(signal: NodeJS.Signals): void {
    this.child.kill(signal)
  }
}

export function stemwork(args: readonly string[], cwd?: string): Promise<Finished> {
  return new Stemwork(args, cwd).finished()
}

/**
 * Runs the command within this process, which takes a tenth of the time, to test its output and effects. Real processes
 * test how a process starts, is stopped and ends.
 */
export async function command(args: readonly string[], cwd?: string): Promise<Finished> {
  const [stdout, stderr] = [new CapturedStream(), new CapturedStream()]
  const before = process.cwd()
  if (cwd !== undefined) process.chdir(cwd)
  try {
    const status = await runCommandLine(args, { stdout, stderr })
    return { status, stdout: stdout.text, stderr: stderr.text }
  } finally {
    process.chdir(before)
  }
}

class CapturedStream extends Writable {
  text = ''

  constructor() {
    super({ decodeStrings: false })
  }

  override _write(chunk: string | Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.text += String(chunk)
    done()
  }
}

/** Starts `stemwork serve` on a free port; resolves when it is ready. */
export async function startService(
  args: readonly string[],
  env?: Record<string, string>,
): Promise<{ process: Stemwork; baseUrl: string }> {
  const process = new Stemwork(['serve', '--port', '0', ...args], undefined, env)
  const [, baseUrl] = await process.printed('stdout', /^stemwork listening on (\S+)\n/)
  return { process, baseUrl: baseUrl! }
}

interface DemoSongModule {
  writeDemoSong(path: string): Promise<{ mixture: Float32Array[] }>
}
interface WavModule {
  fromWav(bytes: Buffer): Float32Array[]
  toWav(planes: Float32Array[], sampleRate: number): Buffer
}

export const demoSong = (await import(new URL('../../demo/demo-song.mjs', import.meta.url).href)) as DemoSongModule
export const wav = (await import(new URL('../../demo/pcm-wav.mjs', import.meta.url).href)) as WavModule

/** A few seconds of the demo song as WAV bytes. */
export async function excerpt(
  folder: string,
  { fromSeconds, seconds }: { fromSeconds: number; seconds: number },
): Promise<Buffer> {
  const { mixture } = await demoSong.writeDemoSong(join(folder, 'whole.wav'))
  return wav.toWav(
    mixture.map((plane) => plane.subarray(fromSeconds * 44_100, (fromSeconds + seconds) * 44_100)),
    44_100,
  )
}
