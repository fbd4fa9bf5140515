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

/** Where a message goes. */
export interface Target {
  app: string
  url: string
}

const kind = 'receiver'
/** A failing receiver is forgotten after this time without a message. */
const keptMs = 90 * 24 * 60 * 60 * 1000
/** More lost races than can happen in practice. */
const mostTries = 20
const mostRead = 1000
const mostListed = 100

export type Receivers = ReturnType<typeof receiverBreakers>

/**
 * A breaker for each receiver, an origin of one application. All processes share it: a document while the receiver
 * fails, and none otherwise.
 */
export function receiverBreakers({ clock, documents, options: { webhooks }, events, logger }: ReceiversParts) {
  return { admit, succeeded, failed, list, bytes, enable }

  /** What a message to this receiver does now. `trial` is granted to one message of all processes. */
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

  /** @param status what it answered; null: it could not be reached */
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

  /** Those of the application that are failing, disabled ones first, then those that have failed longest. */
  async function list(app: string): Promise<FailingReceiver[]> {
    const prefix = keyOf(app, '')
    const found = await documents.list(kind, { limit: mostRead, after: prefix })
    return found
      .filter(({ key }) => key.startsWith(prefix))
      .map(({ value }) => failingReceiverSchema.parse(value))
      .sort((one, other) => orderOf(one) - orderOf(other) || one.failingSince - other.failingSince)
      .slice(0, mostListed)
  }

  /** About what the records of an application's failing receivers take in the store. */
  function bytes(app: string, turn?: Turn): Promise<number> {
    return documentBytes(documents, { kind, prefix: keyOf(app, '') }, turn)
  }

  /** Lets it get messages again. @throws StemworkError `NOT_FOUND` if it is not failing. */
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

/** All keys of an application share a prefix, whatever its id is. */
function keyOf(app: string, origin: string): string {
  return `${hash('sha256', app)}/${origin === '' ? '' : hash('sha256', origin)}`
}

function originOf(url: string): string {
  return new URL(url).origin
}

function orderOf({ disabledAt, nextTrialAt }: FailingReceiver): number {
  return disabledAt !== null ? 0 : nextTrialAt !== null ? 1 : 2
}
