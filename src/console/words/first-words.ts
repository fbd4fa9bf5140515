import type { JobError, JobStatus } from '../../client/client.js'

/** An error explained to a person: its meaning, the remedy and, as `detail`, the service's own message. */
export interface Explanation {
  text: string
  detail?: string
}

/** Why a job failed, by the reason or the code. */
export const failures: Record<string, string> = {
  unsupported_format:
    'This file is not audio that the service can read. Send MP3, WAV, FLAC, M4A, OGG, Opus or a video with sound.',
  decode_failed: 'This file is damaged or incomplete. Send another copy of the song.',
  no_audio: 'This file has no sound.',
  too_long: 'This recording is longer than the service allows. Send it in parts.',
  too_large: 'This file is larger than the service allows. A compressed copy, for example MP3, is smaller.',
  upload_missing: 'The service no longer has the file. Choose it again.',
  deadline: 'This song was not finished by its deadline. Send it again.',
  worker_lost: 'The service stopped while it was processing this song. Send it again.',
  CANCELED: 'This job was stopped.',
  TIMEOUT: 'Processing took longer than the service allows.',
  INTERNAL_ERROR: 'Something went wrong in the service. Send the song again. If it fails again, tell the operator.',
}

export function explainFailure({ code, reason, message }: JobError): Explanation {
  const text = failures[reason ?? ''] ?? failures[code]
  return text === undefined ? { text: message } : { text, detail: message }
}

/** Also used for whatever else cannot be loaded. */
export const unreachable = 'The service cannot be reached. Check your connection and try again.'

export const statusWords: Record<JobStatus, string> = {
  QUEUED: 'Waiting',
  STARTED: 'Running',
  SUCCEEDED: 'Done',
  FAILED: 'Failed',
}

export function jobStateWords({ status, error }: { status: JobStatus; error?: { code: string } | null }): string {
  return error?.code === 'CANCELED' ? 'Stopped' : statusWords[status]
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

/** An estimated time, in words. */
export function aboutWords(seconds: number): string {
  if (seconds < 10) return 'a few seconds'
  if (seconds < 55) return `about ${Math.ceil(seconds / 5) * 5} seconds`
  const minutes = Math.round(seconds / 60)
  if (minutes < 2) return 'about a minute'
  return minutes < 90 ? `about ${minutes} minutes` : `about ${Math.round(minutes / 60)} hours`
}

export function timeLeftWords(seconds: number | undefined): string {
  return seconds === undefined ? 'Estimating the time left' : `${aboutWords(seconds).replace('a', 'A')} left`
}

export function positionWords(position: number): string {
  if (position === 1) return 'Next in your queue'
  return position > 1000 ? 'Behind more than 1,000 of your songs' : `Number ${position} in your queue`
}

export function whenWords(iso: string, now = new Date()): string {
  const when = new Date(iso)
  const time = when.toLocaleTimeString([], { hour: 'numeric', minute: '2-digit' })
  return when.toDateString() === now.toDateString()
    ? `Today, ${time}`
    : `${when.toLocaleDateString([], { day: 'numeric', month: 'short', year: 'numeric' })}, ${time}`
}
