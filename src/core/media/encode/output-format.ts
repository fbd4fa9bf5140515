/**
 * Formats of result files: WAV with integers of 16 or 24 bits or 32-bit floats, FLAC with integers of 16 or 24 bits,
 * MP3 of 320 kbit/s.
 */
export const outputFormats = ['16', '24', '32f', 'flac', 'flac24', 'mp3'] as const

export type OutputFormat = (typeof outputFormats)[number]

/** Sample rates that MP3 has, in Hz. */
export const mp3Rates: readonly number[] = [48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8000]

/** File extension and content type of a format. */
export function fileType(format: OutputFormat): { extension: string; contentType: string } {
  switch (format) {
    case '16':
    case '24':
    case '32f':
      return { extension: 'wav', contentType: 'audio/wav' }
    case 'flac':
    case 'flac24':
      return { extension: 'flac', contentType: 'audio/flac' }
    case 'mp3':
      return { extension: 'mp3', contentType: 'audio/mpeg' }
    default:
      return format satisfies never
  }
}

/** Whether encoding takes much longer than writing the samples as they are. */
export function isCompressed(format: OutputFormat): boolean {
  return format === 'flac' || format === 'flac24' || format === 'mp3'
}
