import { z } from 'zod'
import { requirePackage } from '../../core/engine/errors.js'
import { Problem } from '../routing/problem.js'
import { defineRoute, type DescribedRoute } from '../routing/route.js'
import { LiveSession } from './live-session.js'

const library = 'ws'

const querySchema = z.strictObject({
  sampleRate: z.coerce.number().int().min(8000).max(192_000).describe('Of the samples, in Hz.'),
  channels: z.coerce.number().int().min(1).max(8).default(2).describe('Interleaved, in WAVE order.'),
  format: z.enum(['s16', 's24', 'f32']).default('s16').describe('Little-endian integers or floats, both ways.'),
  stem: z.enum(['vocals', 'accompaniments']).default('accompaniments').describe('What to send back.'),
  latencyMs: z.coerce.number().int().min(250).max(4000).default(1000).describe('From a sample to its stem.'),
})

export const liveRoutes: readonly DescribedRoute[] = [
  defineRoute({
    route: 'GET /live',
    operation: 'live',
    summary: 'Separate a stream while it plays (WebSocket).',
    description:
      'A WebSocket. Binary messages are samples, of any length, and come back as those of the stem, in the same ' +
      'form, the latency later. The text message `end` ends the stream: the rest follows, then a text message ' +
      '`{"type":"end","seconds","lateBlocks","lateSeconds"}`, and the connection is closed with 1000. Where the ' +
      'service is too slow, the samples pass unchanged, and count as late. Closed with 1008: the quota is used up, ' +
      'the key has ended, or hardly any samples come; with 1013: all streams are taken, or other applications ' +
      'needed this one.',
    bucket: 'create',
    isWebSocket: true,
    query: querySchema,
    answer: { description: 'Only by WebSocket.' },
    otherAnswers: { 101: 'The connection is a WebSocket from here on.' },
    problems: ['UPGRADE_REQUIRED', 'QUOTA_EXCEEDED'],
    async handle(call, { query }) {
      if (!call.request.isUpgrade)
        throw new Problem('UPGRADE_REQUIRED', 'This address is a WebSocket. Connect to it with a WebSocket client.', {
          headers: { upgrade: 'websocket', connection: 'upgrade' },
        })
      await call.service.engine.chargeAudio(call.caller.id, 0)
      return {
        status: 101,
        headers: {},
        body: null,
        upgrade: (socket) => void new LiveSession(socket, call, query).run(),
      }
    },
  }),
]

export const requireWebSockets = () => requirePackage('live', library)
