import { z } from 'zod'

/**
 * State of a webhook receiver (an origin) of an application that has failed since its last success. Receivers that
 * answer have no record. All times are epoch milliseconds.
 */
export const failingReceiverSchema = z.looseObject({
  app: z.string(),
  /** For example `https://example.com`. */
  origin: z.string(),
  /** Consecutive failures. */
  failures: z.number().int(),
  failingSince: z.number(),
  /** HTTP status of the last failure; null: the receiver could not be reached. */
  lastStatus: z.number().nullable(),
  /** Messages wait until this time, then one is tried; null: all are sent. */
  nextTrialAt: z.number().nullable(),
  /** Since this time, the receiver gets no messages until it is enabled. */
  disabledAt: z.number().nullable(),
})
export type FailingReceiver = z.infer<typeof failingReceiverSchema>

/** Consecutive failures after which only one message at a time is tried. */
export const failuresUntilPause = 5
const firstPauseMs = 60_000
const longestPauseMs = 2 * 60 * 60 * 1000

/** Decision on a message: send it, send it as a trial, let it wait, or give it up. */
export type Admission = { kind: 'send' } | { kind: 'trial' } | { kind: 'wait'; delayMs: number } | { kind: 'disabled' }

export function admission(receiver: FailingReceiver | undefined, now: number): Admission {
  if (!receiver) return { kind: 'send' }
  if (receiver.disabledAt !== null) return { kind: 'disabled' }
  if (receiver.nextTrialAt === null) return { kind: 'send' }
  return receiver.nextTrialAt <= now ? { kind: 'trial' } : { kind: 'wait', delayMs: receiver.nextTrialAt - now }
}

/** The receiver while one message is tried: the other messages wait for its outcome. */
export function onTrial(receiver: FailingReceiver, now: number, trialMs: number): FailingReceiver {
  return { ...receiver, nextTrialAt: now + trialMs }
}

/** The receiver after another failure. Pauses double; a receiver that has failed for too long is disabled. */
export function afterFailure(
  known: FailingReceiver | undefined,
  { app, origin, status }: { app: string; origin: string; status: number | null },
  { now, disableAfterMs }: { now: number; disableAfterMs: number },
): FailingReceiver {
  const failures = (known?.failures ?? 0) + 1
  const failingSince = known?.failingSince ?? now
  const isPaused = failures >= failuresUntilPause
  const pauseMs = Math.min(longestPauseMs, firstPauseMs * 2 ** (failures - failuresUntilPause))
  return {
    ...known,
    app,
    origin,
    failures,
    failingSince,
    lastStatus: status,
    nextTrialAt: isPaused ? now + pauseMs : null,
    disabledAt: known?.disabledAt ?? (isPaused && now - failingSince >= disableAfterMs ? now : null),
  }
}
