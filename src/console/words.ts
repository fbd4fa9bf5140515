import { ClientError, type Job, type JobError, type JobStatus } from '../client/client.js'

/** What went wrong, for a person: what it means, what to do, and underneath what the service said. */
export interface Explanation {
  text: string
  detail?: string
}

const tooLarge = 'This file is larger than the service allows. A compressed copy, for example MP3, is smaller.'

const reasons: Record<string, string> = {
  unsupported_format:
    'This file is not audio that the service can read. Send MP3, WAV, FLAC, M4A, OGG, Opus or a video with sound.',
  decode_failed: 'This file is damaged or incomplete. Send another copy of the song.',
  no_audio: 'This file has no sound.',
  too_long: 'This recording is longer than the service allows. Send it in parts.',
  too_large: tooLarge,
  upload_missing: 'The service no longer has the file. Choose it again.',
  deadline: 'This song was not finished by its deadline. Send it again.',
  link_incomplete: 'This link is not complete. Open it exactly as it was sent, or ask for a new one.',
  link_expired: 'This link has expired. Ask whoever sent it for a new one.',
  link_revoked: 'This link was revoked by whoever sent it. Ask for a new one.',
  worker_lost: 'The service stopped while it was processing this song. Send it again.',
}

const codes: Record<string, string> = {
  UNAUTHORIZED: 'This key is not valid. Check that it is complete, or get a new one.',
  NETWORK: 'The service cannot be reached. Check your connection and try again.',
  NOT_FOUND: 'This song no longer exists. It may have been deleted.',
  GONE: 'The files have expired and were removed. Send the song again.',
  FORBIDDEN: 'This link is no longer valid. Reload the page.',
  RATE_LIMITED: 'Too many requests. Wait a moment and try again.',
  QUEUE_FULL: 'Too many songs are waiting. Try again when some of them are done.',
  STORAGE_FULL: 'Your storage is full. Delete songs that you no longer need.',
  STORE_UNAVAILABLE: 'The service cannot reach its storage at the moment. Try again in a minute.',
  DRAINING: 'The service is not accepting new songs at the moment. Try again later.',
  SHUTTING_DOWN: 'The service is restarting. Try again in a minute.',
  TOO_LARGE: tooLarge,
  CANCELED: 'This job was stopped.',
  TIMEOUT: 'Processing took longer than the service allows.',
  INTERNAL_ERROR: 'Something went wrong in the service. Send the song again. If it fails again, tell the operator.',
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

export function jobStateWords({ status, error }: Pick<Job, 'status' | 'error'>): string {
  return error?.code === 'CANCELED' ? 'Stopped' : statusWords[status]
}

const stages: Record<string, string> = {
  fetch: 'Fetching the song',
  separate: 'Separating vocals and music',
  analyze: 'Finding tempo, key and beats',
  draw: 'Drawing the waveforms',
  publish: 'Saving the results',
}

const timings: Record<string, string> = {
  load: 'Loading the model',
  decode: 'Decoding',
  dsp: 'Signal processing',
  network: 'Neural network',
  write: 'Writing the files',
  draw: 'Drawing',
}

/** What a workflow measured, by the name that it gives it. */
export function timingWords(name: string): string {
  return timings[name] ?? name
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

export function clock(seconds: number): string {
  const whole = Math.max(0, Math.floor(seconds))
  const [hours, minutes, rest] = [
    Math.floor(whole / 3600),
    Math.floor(whole / 60) % 60,
    String(whole % 60).padStart(2, '0'),
  ]
  return hours > 0 ? `${hours}:${String(minutes).padStart(2, '0')}:${rest}` : `${minutes}:${rest}`
}

/** A length of time, for sentences. */
export function timeWords(seconds: number): string {
  if (seconds < 90) return `${Math.round(seconds)} seconds`
  const minutes = Math.round(seconds / 60)
  return minutes < 90 ? `${minutes} minutes` : `${(seconds / 3600).toFixed(1).replace('.0', '')} hours`
}

export function timeLeftWords(seconds: number | undefined): string {
  if (seconds === undefined) return 'Estimating the time left'
  if (seconds < 10) return 'A few seconds left'
  if (seconds < 55) return `About ${Math.ceil(seconds / 5) * 5} seconds left`
  const minutes = Math.round(seconds / 60)
  if (minutes < 2) return 'About a minute left'
  return minutes < 90 ? `About ${minutes} minutes left` : `About ${Math.round(minutes / 60)} hours left`
}

export function positionWords(position: number): string {
  if (position === 1) return 'Next in your queue'
  return position > 1000 ? 'Behind more than 1,000 of your songs' : `Number ${position} in your queue`
}

/** Until a waiting job starts. */
export function startWords(seconds: number | undefined): string {
  if (seconds === undefined) return 'It starts when its turn comes.'
  return seconds < 10 ? 'It starts in a few seconds.' : `It starts in about ${timeWords(seconds)}.`
}

/** Until a waiting job is done. */
export function endWords(seconds: number | undefined): string {
  return seconds === undefined ? '' : `It is probably done in about ${timeWords(Math.max(1, seconds))}.`
}

export function sizeWords(bytes: number): string {
  if (bytes >= 1e9) return `${(bytes / 1e9).toFixed(1)} GB`
  return bytes < 1e6 ? `${Math.max(1, Math.round(bytes / 1e3))} kB` : `${(bytes / 1e6).toFixed(1)} MB`
}

export function whenWords(iso: string, now = new Date()): string {
  const when = new Date(iso)
  const time = when.toLocaleTimeString([], { hour: 'numeric', minute: '2-digit' })
  return when.toDateString() === now.toDateString()
    ? `Today, ${time}`
    : `${when.toLocaleDateString([], { day: 'numeric', month: 'short', year: 'numeric' })}, ${time}`
}

export function durationWords(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`
  return ms < 60_000 ? `${(ms / 1000).toFixed(1)} s` : `${clock(ms / 1000)} min`
}
