import { z } from 'zod'
import { receiverView, receiverViewSchema } from '../jobs/receiver-view.js'
import { json } from '../routing/answer.js'
import { defineRoute } from '../routing/route.js'

export const receiverRoutes = [
  defineRoute({
    route: 'GET /application/webhook-receiver',
    operation: 'listWebhookReceivers',
    summary: 'List the webhook receivers that are failing',
    description: 'Those of the application, disabled ones first, at most 100. One that answers is not listed.',
    answer: {
      description: 'The failing receivers.',
      schema: z.object({ receivers: z.array(receiverViewSchema) }).meta({ id: 'WebhookReceiverList' }),
    },
    async handle(call) {
      const receivers = await call.service.engine.failingReceivers(call.caller.id)
      return json({ receivers: receivers.map(receiverView) })
    },
  }),
  defineRoute({
    route: 'POST /application/webhook-receiver/enable',
    operation: 'enableWebhookReceiver',
    summary: 'Let a webhook receiver get messages again',
    description:
      'New messages are sent to it at once, those that wait for it within two hours. Messages that were given up ' +
      'are not sent.',
    body: z.strictObject({ origin: z.string().max(8192).describe('As listed.') }).meta({ id: 'EnabledReceiver' }),
    answer: { description: 'The receiver gets messages again.', schema: z.object({ origin: z.string() }) },
    problems: ['NOT_FOUND'],
    async handle(call, { body: { origin } }) {
      await call.service.engine.enableReceiver(call.caller.id, origin)
      return json({ origin })
    },
  }),
]
