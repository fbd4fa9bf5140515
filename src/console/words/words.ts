import { ClientError } from '../../client/client.js'
import { aboutWords, type Explanation, failures, unreachable } from './first-words.js'

export * from './first-words.js'
export * from './job-words.js'

/** Explanations of failed requests, by the reason or the code. */
const refusals: Record<string, string | undefined> = {
  ...failures,
  link_incomplete: 'This link is not complete. Open it exactly as it was sent, or ask for a new one.',
  link_expired: 'This link has expired. Ask whoever sent it for a new one.',
  link_revoked: 'This link was revoked by whoever sent it. Ask for a new one.',
  UNAUTHORIZED: 'This key is not valid. Check that it is complete, or get a new one.',
  NETWORK: unreachable,
  NOT_FOUND: 'This song no longer exists. It may have been deleted.',
  GONE: 'The files have expired and were removed. Send the song again.',
  FORBIDDEN: 'This link is no longer valid. Reload the page.',
  RATE_LIMITED: 'Too many requests. Wait a moment and try again.',
  QUEUE_FULL: 'Too many songs are waiting. Try again when some of them are done.',
  QUOTA_EXCEEDED: 'You have used all that you may use in a day. Try again tomorrow, or ask the operator for more.',
  STORAGE_FULL: 'Your storage is full. Delete songs that you no longer need.',
  STORE_UNAVAILABLE: 'The service cannot reach its storage at the moment. Try again in a minute.',
  DRAINING: 'The service is not accepting new songs at the moment. Try again later.',
  SHUTTING_DOWN: 'The service is restarting. Try again in a minute.',
  TOO_LARGE: failures.too_large,
}

export function explain(error: unknown): Explanation {
  // What browsers say of a script that is loaded when it is used. A page that is reloaded then is lost.
  if (error instanceof TypeError && /import/i.test(error.message)) return { text: unreachable }
  if (!ClientError.is(error))
    return { text: 'Something went wrong on this page. Reload it and try again.', detail: String(error) }
  const detail = error.requestId === undefined ? error.message : `${error.message} (Request ${error.requestId})`
  const text = refusals[error.reason ?? ''] ?? refusals[error.code]
  return text === undefined
    ? { text: error.message, detail: `Request ${error.requestId ?? 'unknown'}` }
    : { text, detail }
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

/** Words for a timing of a workflow, by its name. */
export function timingWords(name: string): string {
  return timings[name] ?? name
}

export function stageWords(stage: string | null): string {
  return stages[stage ?? ''] ?? 'Working'
}

/** Words for the time until a waiting job starts. */
export function startWords(seconds: number | undefined): string {
  return seconds === undefined ? 'It starts when its turn comes.' : `It starts in ${aboutWords(seconds)}.`
}

/** Words for the time until a waiting job is done. */
export function endWords(seconds: number | undefined): string {
  return seconds === undefined ? '' : `It will probably be done in ${aboutWords(seconds)}.`
}
