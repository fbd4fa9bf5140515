import { hash } from 'node:crypto'
import { StemworkError } from '../errors.js'
import { documentBytes } from '../limits/document-bytes.js'
import type { Turn } from '../limits/rested.js'
import type { DocumentStore } from '../ports/document-store.js'
import {
  admission,
  type Admission,
  afterFailure,
  type FailingReceiver,
  failingReceiverSchema,
  onTrial,
} from '../job/receiver.js'
import type { SharedParts } from '../engine-parts.js'

interface ReceiversParts extends Pick<SharedParts, 'clock' | 'events' | 'options' | 'logger'> {
  documents: DocumentStore
}

/** The receiver's URL of a message, and its application. */
export interface Target {
  app: string
  url: string
}

const kind = 'receiver'
/** The record of a failing receiver expires after this time without a message. */
const keptMs = 90 * 24 * 60 * 60 * 1000
/** More lost races than occur in practice. */
const mostTries = 20
const mostRead = 1000
const mostListed = 100

export type Receivers = ReturnType<typeof receiverBreakers>

/**
 * A circuit breaker for each receiver, which is an origin of one application. All processes share it: a document while
 * the receiver fails, none otherwise.
 */
export function receiverBreakers({ clock, documents, options: { webhooks }, events, logger }: ReceiversParts) {
  return { admit, succeeded, failed, list, bytes, enable }

  /** Decides on a message to this receiver. `trial` is granted to one message among all processes. */
  async function admit({ app, url }: Target): Promise<Admission> {
    const found = await read(app, originOf(url))
    const now = await clock.time()
    const admitted = admission(found?.receiver, now)
    if (admitted.kind !== 'trial' || !found) return admitted
    const trialMs = webhooks.timeoutMs + 1000
    const receiver = onTrial(found.receiver, now, trialMs)
    const isGranted = await documents.put(documentOf(receiver), { version: found.version })
    return isGranted === undefined ? { kind: 'wait', delayMs: trialMs } : admitted
  }

  async function succeeded({ app, url }: Target): Promise<void> {
    const origin = originOf(url)
    if (await read(app, origin)) await documents.delete(kind, keyOf(app, origin))
  }

  /** @param status the receiver's status; null: it could not be reached */
  async function failed({ app, url }: Target, status: number | null): Promise<void> {
    const { disableAfterMs } = webhooks
    const origin = originOf(url)
    for (let tries = 0; tries < mostTries; tries++) {
      const found = await read(app, origin)
      const now = await clock.time()
      const receiver = afterFailure(found?.receiver, { app, origin, status }, { now, disableAfterMs })
      const written = await documents.put(documentOf(receiver), { version: found?.version ?? 0 })
      if (written === undefined) continue
      if (receiver.disabledAt === null || found?.receiver.disabledAt) return
      logger.warn({ app, receiver: origin, status }, 'A webhook receiver has failed for too long and was disabled.')
      events.announce('receiver.disabled', { receiver })
      return
    }
  }

  /** Readable records of failing receivers: disabled ones first, then paused ones, each by the time they have failed. */
  async function list(app: string): Promise<FailingReceiver[]> {
    const prefix = keyOf(app, '')
    const found = await documents.list(kind, { limit: mostRead, after: prefix })
    return found
      .filter(({ key }) => key.startsWith(prefix))
      .flatMap(({ value }) => failingReceiverSchema.safeParse(value).data ?? [])
      .sort((one, other) => orderOf(one) - orderOf(other) || one.failingSince - other.failingSince)
      .slice(0, mostListed)
  }

  /** Approximate bytes of the records of an application's failing receivers. */
  function bytes(app: string, turn?: Turn): Promise<number> {
    return documentBytes(documents, { kind, prefix: keyOf(app, '') }, turn)
  }

  /** Resumes the messages to a receiver. @throws StemworkError `NOT_FOUND` if it is not failing. */
  async function enable(app: string, origin: string): Promise<void> {
    if (!(await read(app, origin)))
      throw new StemworkError(
        'NOT_FOUND',
        `This application has no failing webhook receiver at ${JSON.stringify(origin)}. List them to see their ` +
          'origins; all others get their messages.',
      )
    await documents.delete(kind, keyOf(app, origin))
  }

  async function read(
    app: string,
    origin: string,
  ): Promise<{ version: number; receiver: FailingReceiver } | undefined> {
    const found = await documents.get(kind, keyOf(app, origin))
    return found && { version: found.version, receiver: failingReceiverSchema.parse(found.value) }
  }
}

function documentOf(receiver: FailingReceiver) {
  return { kind, key: keyOf(receiver.app, receiver.origin), value: receiver, ttlMs: keptMs }
}

/** Hashed, so that all keys of an application share a prefix, whatever characters its id has. */
function keyOf(app: string, origin: string): string {
  return `${hash('sha256', app)}/${origin === '' ? '' : hash('sha256', origin)}`
}

function originOf(url: string): string {
  return new URL(url).origin
}

function orderOf({ disabledAt, nextTrialAt }: FailingReceiver): number {
  return disabledAt !== null ? 0 : nextTrialAt !== null ? 1 : 2
}
