import { once } from 'node:events'
import { type RawFormat, rawEncodings, type RawPcm } from '../../core/media/decode/pcm/raw-pcm.js'
import { PcmEncoder, type PcmFormat } from '../../core/media/encode/pcm-encoder.js'
import { wavContainer } from '../../core/media/encode/wav-container.js'
import { latencyBounds } from '../../core/workflows/separation/live/plan.js'
import { type LiveStems, separateStream } from '../../live.js'
import { type Command, type CommandInput, exitStatus, flag, type Terminal, UsageError, valued } from '../command.js'
import { onInterruption } from '../terminal/interruption.js'
import { separationCommandOptions, separationSettings } from '../workflows/model-options.js'
import { type PcmPipe, rawPipe, wavPipe } from '../files/pcm-pipe.js'

const stems = ['vocals', 'accompaniments'] as const
const rawFormats = Object.keys(rawEncodings) as RawFormat[]

export const command: Command = {
  usage: 'live [options]',
  description:
    'Separates a stream while it plays: WAV or raw samples from standard input, one stem to standard output, in the ' +
    'same form.',
  options: {
    stem: valued(stems.join('|'), 'Stem to write. Default: accompaniments.'),
    latency: valued(
      'ms',
      `Delay of the stem, ${latencyBounds.min} to ${latencyBounds.max}; more gives better stems. Default: 1000.`,
    ),
    raw: valued(rawFormats.join('|'), 'Read and write samples without a header, little-endian and interleaved.'),
    rate: valued('Hz', 'Sample rate of --raw. Default: 44100.'),
    channels: valued('n', 'Channels of --raw. Default: 2.'),
    wait: flag('Wait if the machine is too slow, instead of passing the input on unchanged.'),
    model: separationCommandOptions.model,
    runtime: separationCommandOptions.runtime,
  },
  notes:
    'For example: ffmpeg -i <file or address> -f wav - | stemwork live | ffplay -nodisp -autoexit -i -\n' +
    'When the machine is too slow, the input passes unchanged, and standard error says so.',
  async run(input, terminal) {
    const { model, runtime } = separationSettings(input)
    const stem = stems.find((name) => name === (input.text('stem') ?? 'accompaniments'))
    if (!stem) throw new UsageError(`--stem must be ${stems.join(' or ')}, not "${input.text('stem')}".`)
    const latencyMs = input.number('latency', latencyBounds)
    const raw = rawOf(input)
    if (process.stdin.isTTY || ('isTTY' in terminal.stdout && terminal.stdout.isTTY === true))
      throw new UsageError('Audio comes from standard input and goes to standard output: connect both with pipes.')
    const pipe = raw ? rawPipe(process.stdin, raw) : await wavPipe(process.stdin)
    const interruption = onInterruption((status) => process.exit(status))
    const { signal } = interruption
    try {
      const blocks = separateStream(pipe.blocks, {
        sampleRate: pipe.sampleRate,
        latencyMs,
        model,
        runtime,
        signal,
        whenLate: input.isOn('wait') ? 'wait' : 'pass',
      })
      await writeStem(blocks, { ...pipe, stem, isRaw: raw !== undefined }, terminal)
      return exitStatus.done
    } catch (error) {
      const status = interruption.status()
      if (status === undefined) throw error
      return status
    } finally {
      interruption.release()
      process.stdin.destroy()
    }
  },
}

function rawOf(input: CommandInput): RawPcm | undefined {
  const sampleRate = input.number('rate', { min: 8000, max: 192_000 })
  const channelCount = input.number('channels', { min: 1, max: 64 })
  const raw = input.oneOf(rawFormats, 'raw')
  if (raw === undefined) {
    if (sampleRate ?? channelCount)
      throw new UsageError('--rate and --channels are for raw samples. Add --raw, or leave them out.')
    return undefined
  }
  return { sampleRate: sampleRate ?? 44_100, channelCount: channelCount ?? 2, encoding: rawEncodings[raw] }
}

interface Output extends RawPcm {
  stem: (typeof stems)[number]
  isRaw: boolean
}

/** Writes as fast as the reader reads, and stops when the reader closes the pipe. */
async function writeStem(blocks: AsyncIterable<LiveStems>, output: Output, terminal: Terminal): Promise<void> {
  const { stdout } = terminal
  const { stem, sampleRate, channelCount: channels, encoding, isRaw } = output
  const format = formatOf(encoding)
  const encoder = new PcmEncoder(format)
  const late = lateBlocks(terminal, sampleRate)
  let isClosed = false
  stdout.once('error', () => (isClosed = true)).once('close', () => (isClosed = true))
  const write = async (bytes: Uint8Array) => {
    // A copy: the encoder reuses its memory.
    if (stdout.write(bytes.slice()) || isClosed) return
    await Promise.race(['drain', 'close', 'error'].map((event) => once(stdout, event))).catch(() => undefined)
  }
  if (!isRaw) await write(wavContainer({ sampleRate, channels, format }).header())
  for await (const block of blocks) {
    if (isClosed) break
    late.count(block)
    await write(encoder.encode(block.stems[stem]))
  }
  late.report()
}

/** Format with the sample width of the input; 8 bits become 16, and more than 24 become floats. */
function formatOf({ kind, bytes }: PcmPipe['encoding']): PcmFormat {
  if (kind === 'float' || bytes > 3) return '32f'
  return bytes === 3 ? '24' : '16'
}

/** Reports late blocks: a warning at the first one, and their total at the end. */
function lateBlocks({ stderr }: Terminal, sampleRate: number) {
  let [blocks, late, all] = [0, 0, 0]
  return {
    count({ isLate, stems: { vocals } }: LiveStems): void {
      const samples = vocals[0]?.length ?? 0
      all += samples
      if (!isLate) return
      if (blocks === 0)
        stderr.write(
          'stemwork: This machine is too slow at the moment: the input passes unchanged. A longer --latency may ' +
            'help.\n',
        )
      blocks++
      late += samples
    },
    report(): void {
      if (blocks === 0) return
      const seconds = (samples: number) => (samples / sampleRate).toFixed(1)
      stderr.write(`stemwork: ${blocks} blocks were late: ${seconds(late)} of ${seconds(all)} s passed unchanged.\n`)
    },
  }
}
