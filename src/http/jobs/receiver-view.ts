import { z } from 'zod'
import type { FailingReceiver } from '../../core/engine/job/receiver.js'
import { timeOrNull, timestamp } from './job-view.js'

const time = z.iso.datetime()

export const receiverViewSchema = z
  .object({
    origin: z.string().describe('Scheme, host and port, which together are one receiver.'),
    state: z
      .enum(['failing', 'paused', 'disabled'])
      .describe(
        '`failing`: it still gets its messages. `paused`: after five failures in a row, messages wait, and one at a ' +
          'time is tried. `disabled`: it has failed for too long, and messages for it are given up.',
      ),
    failures: z.number().int().describe('Consecutive failures.'),
    lastStatus: z.number().int().nullable().describe('The status of its last answer; null: it could not be reached.'),
    failingSince: time,
    nextTrialAt: time.nullable(),
    disabledAt: time.nullable(),
  })
  .meta({ id: 'WebhookReceiver' })

export function receiverView(receiver: FailingReceiver): z.output<typeof receiverViewSchema> {
  const { origin, failures, lastStatus, failingSince, nextTrialAt, disabledAt } = receiver
  return {
    origin,
    state: disabledAt !== null ? 'disabled' : nextTrialAt !== null ? 'paused' : 'failing',
    failures,
    lastStatus,
    failingSince: timestamp(failingSince),
    nextTrialAt: disabledAt === null ? timeOrNull(nextTrialAt) : null,
    disabledAt: timeOrNull(disabledAt),
  }
}
