import { ClientError, type JobError, type JobStatus } from '../client/client.js'

/** What went wrong, for a person: what it means, what to do, and underneath what the service said. */
export interface Explanation {
  text: string
  detail?: string
}

const tooLarge = 'This file is larger than the service allows. A compressed copy, for example MP3, is smaller.'

const reasons: Record<string, string> = {
  unsupported_format:
    'This file is not audio that can be read here. MP3, WAV, FLAC, M4A, OGG, Opus and the sound of most videos work.',
  decode_failed: 'This file is damaged or incomplete. Try another copy of the song.',
  no_audio: 'There is no sound in this file.',
  too_long: 'This recording is longer than the service allows. Cut it into parts and try again.',
  too_large: tooLarge,
  upload_missing: 'The upload did not arrive. Choose the file once more.',
  worker_lost: 'The service was interrupted while it worked on this song. Try again.',
}

const codes: Record<string, string> = {
  UNAUTHORIZED: 'This key is not valid here. Check it for missing characters, or ask for a new one.',
  NETWORK: 'The service cannot be reached. Check your connection and try again.',
  NOT_FOUND: 'This job does not exist any more. It may have been deleted.',
  GONE: 'The files of this job were removed because their time was over. Send the song once more.',
  FORBIDDEN: 'This link is no longer valid. Reload the page.',
  RATE_LIMITED: 'That was a little too fast for the service. Wait a moment and try again.',
  QUEUE_FULL: 'Too many of your songs are waiting already. Try again when some are done.',
  STORE_UNAVAILABLE: 'The service cannot reach its storage just now. Try again in a minute.',
  SHUTTING_DOWN: 'The service is restarting. Try again in a minute.',
  TOO_LARGE: tooLarge,
  CANCELED: 'This job was stopped.',
  TIMEOUT: 'This took longer than the service allows.',
  INTERNAL_ERROR: 'Something went wrong inside the service. Try again; if it happens again, tell its operator.',
}

export function explain(error: unknown): Explanation {
  if (!ClientError.is(error))
    return { text: 'Something went wrong on this page. Reload it and try again.', detail: String(error) }
  const detail = error.requestId === undefined ? error.message : `${error.message} (Request ${error.requestId})`
  const text = reasons[error.reason ?? ''] ?? codes[error.code]
  return text === undefined
    ? { text: error.message, detail: `Request ${error.requestId ?? 'unknown'}` }
    : { text, detail }
}

export function explainFailure({ code, reason, message }: JobError): Explanation {
  const text = reasons[reason ?? ''] ?? codes[code]
  return text === undefined ? { text: message } : { text, detail: message }
}

export const statusWords: Record<JobStatus, string> = {
  QUEUED: 'Waiting',
  STARTED: 'Working',
  SUCCEEDED: 'Done',
  FAILED: 'Failed',
}

const stages: Record<string, string> = {
  fetch: 'Getting the song ready',
  separate: 'Separating voice and music',
  draw: 'Drawing the waveforms',
  publish: 'Storing the result',
}

export function stageWords(stage: string | null): string {
  return stages[stage ?? ''] ?? 'Working'
}

const outputs: Record<string, string> = { vocals: 'Vocals', accompaniments: 'Accompaniment' }

/** `vocalsPeaks` becomes `Vocals peaks`. */
export function outputWords(name: string): string {
  const [first = '', ...rest] = name.replace(/([a-z])([A-Z])/g, '$1 $2').split(/[ _-]/)
  const title = outputs[first] ?? first.charAt(0).toUpperCase() + first.slice(1)
  return [title, ...rest].join(' ').replace(/ ./g, (letter) => letter.toLowerCase())
}

const formats: Record<string, string> = {
  '16': 'WAV, 16 bits',
  '24': 'WAV, 24 bits',
  '32f': 'WAV, 32-bit floats',
  flac: 'FLAC, 16 bits',
  flac24: 'FLAC, 24 bits',
}

export function formatWords(format: string): string {
  return formats[format] ?? format.toUpperCase()
}

export function clock(seconds: number): string {
  const whole = Math.max(0, Math.floor(seconds))
  const [hours, minutes, rest] = [
    Math.floor(whole / 3600),
    Math.floor(whole / 60) % 60,
    String(whole % 60).padStart(2, '0'),
  ]
  return hours > 0 ? `${hours}:${String(minutes).padStart(2, '0')}:${rest}` : `${minutes}:${rest}`
}

export function timeLeftWords(seconds: number | undefined): string {
  if (seconds === undefined) return 'Working out the time left'
  if (seconds < 10) return 'A few seconds left'
  if (seconds < 55) return `About ${Math.ceil(seconds / 5) * 5} seconds left`
  const minutes = Math.round(seconds / 60)
  return minutes < 2 ? 'About a minute left' : `About ${minutes} minutes left`
}

export function sizeWords(bytes: number): string {
  return bytes < 1e6 ? `${Math.max(1, Math.round(bytes / 1e3))} kB` : `${(bytes / 1e6).toFixed(1)} MB`
}

export function whenWords(iso: string, now = new Date()): string {
  const when = new Date(iso)
  const time = when.toLocaleTimeString([], { hour: '2-digit', minute: '2-digit' })
  return when.toDateString() === now.toDateString()
    ? `Today, ${time}`
    : `${when.toLocaleDateString([], { day: 'numeric', month: 'short', year: 'numeric' })}, ${time}`
}
