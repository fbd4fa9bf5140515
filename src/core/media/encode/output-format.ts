/**
 * Formats of result files: WAV, AIFF and FLAC with integers of 16 or 24 bits, WAV and AIFF with 32-bit floats, MP3 of
 * 320 kbit/s.
 *
 * To add a format: a name here, a row below and, unless it is a variant of another one, its writer in `encoder.ts`.
 */
export const outputFormats = ['16', '24', '32f', 'flac', 'flac24', 'mp3', 'aiff', 'aiff24', 'aiff32f'] as const

export type OutputFormat = (typeof outputFormats)[number]

interface FormatFacts {
  container: 'WAV' | 'FLAC' | 'MP3' | 'AIFF'
  /** Name for users. */
  label: string
  extension: string
  contentType: string
  /** Width of the samples, if they have one. */
  bits?: 16 | 24 | 32
  /** Whether encoding takes much longer than writing plain samples: it gets a thread, and cannot be resumed. */
  isCompressed: boolean
  /** More channels are mixed to two. */
  mostChannels?: number
  /** Supported sample rates in Hz, or the highest one. */
  rates?: readonly number[] | number
}

/** Sample rates of MPEG-1 Layer III in Hz, in the order of their codes. */
export const mp3Rates: readonly number[] = [44_100, 48_000, 32_000]

const wav = { container: 'WAV', extension: 'wav', contentType: 'audio/wav', isCompressed: false } as const
const aiff = { container: 'AIFF', extension: 'aiff', contentType: 'audio/aiff', isCompressed: false } as const
const flac = {
  container: 'FLAC',
  extension: 'flac',
  contentType: 'audio/flac',
  isCompressed: true,
  // FLAC stores the rate in 20 bits and the number of channels in three.
  rates: 655_350,
  mostChannels: 8,
} as const

/** Differences between the formats; all else follows from them. */
export const formatTable: Readonly<Record<OutputFormat, FormatFacts>> = {
  '16': { ...wav, label: 'WAV 16-bit', bits: 16 },
  '24': { ...wav, label: 'WAV 24-bit', bits: 24 },
  '32f': { ...wav, label: 'WAV 32-bit float', bits: 32 },
  flac: { ...flac, label: 'FLAC 16-bit', bits: 16 },
  flac24: { ...flac, label: 'FLAC 24-bit', bits: 24 },
  mp3: {
    container: 'MP3',
    label: 'MP3 320 kbit/s',
    extension: 'mp3',
    contentType: 'audio/mpeg',
    isCompressed: true,
    mostChannels: 2,
    rates: mp3Rates,
  },
  aiff: { ...aiff, label: 'AIFF 16-bit', bits: 16 },
  aiff24: { ...aiff, label: 'AIFF 24-bit', bits: 24 },
  aiff32f: { ...aiff, label: 'AIFF 32-bit float', bits: 32 },
}

/** A file of this format, as an output of a workflow. */
export function formatFile(name: string, format: OutputFormat): { fileName: string; contentType: string } {
  const { extension, contentType } = formatTable[format]
  return { fileName: `${name}.${extension}`, contentType }
}
