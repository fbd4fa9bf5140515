/** Formats of the service in which a mix can be exported. */
export type ExportFormat = '16' | '24' | 'flac24' | 'mp3'

export const exportFormats: Record<ExportFormat, { label: string; extension: string }> = {
  '16': { label: 'WAV 16-bit', extension: 'wav' },
  '24': { label: 'WAV 24-bit', extension: 'wav' },
  flac24: { label: 'FLAC 24-bit', extension: 'flac' },
  mp3: { label: 'MP3 320 kbit/s', extension: 'mp3' },
}
