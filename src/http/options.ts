import { z } from 'zod'
import { StemworkError } from '../core/engine/errors.js'
import { applicationIdSchema } from '../core/engine/job/application-id.js'
import { checkInput, issueTexts } from '../core/engine/workflow/check-input.js'
import { longestTimerMs } from '../core/engine/workflow/policy.js'

/** The sender of a request, which owns the jobs that it creates. */
export interface Caller {
  /** 1 to 128 letters, digits and `._-`: it becomes part of blob keys. */
  id: string
  name: string
}

/** A caller, and the key or link that it used. */
export interface Sender extends Caller {
  /** Public part of the key; absent if the host identifies its callers. */
  keyId?: string
  /** The link that the request came by, instead of a key; it expires at this time (epoch milliseconds). */
  link?: { id: string; jobId: string; expiresAt: number }
}

/** Identifies the sender of a request; `undefined` means 401. */
export type Authenticate = (request: Request) => Promise<Caller | undefined> | Caller | undefined

/** A piece of a stem, in the format of the received samples. */
export interface LivePiece {
  bytes: Uint8Array
  seconds: number
  /** Whether the samples passed unchanged. */
  isLate: boolean
}

/** Format of a stream's samples, and the stem to separate. */
export interface LiveFormat {
  sampleRate: number
  channels: number
  format: 's16' | 's24' | 'f32'
  stem: 'vocals' | 'accompaniments'
  latencyMs: number
}

/** Separates a stream of samples as it arrives. */
export type SeparateLive = (
  samples: AsyncIterable<Uint8Array>,
  format: LiveFormat,
  signal: AbortSignal,
) => AsyncIterable<LivePiece>

export const callerSchema = z.object({ id: applicationIdSchema, name: z.string() })

const count = z.number().int().positive()
const off = z.boolean().default(false)

const pathSchema = z
  .string()
  .regex(/^(\/[A-Za-z0-9._~-]+)*$/, 'must be empty or like "/v1", without a slash at the end')
/** An origin as browsers send it; with a slash at its end, it would match none. */
const originSchema = z
  .string()
  .regex(/^(null|[a-z][a-z0-9+.-]*:\/\/[^/]+)$/, 'must be like https://app.example.org, without a path')
const timer = count.max(longestTimerMs)
/** A thousand years at most, as for times of the engine: JavaScript has no date for much later ones. */
const seconds = count.max(365_000 * 24 * 3600)
const rateSchema = z.union([z.literal(false), z.strictObject({ requests: count, perSeconds: z.number().positive() })])

export const handlerOptionsSchema = z.strictObject({
  basePath: z
    .union([pathSchema, z.array(pathSchema).min(1)])
    .transform((paths) => [paths].flat())
    .default([''])
    .describe('Path of the routes, below the path of the mount. Several paths are aliases of each other.'),
  publicUrl: z
    .url({ protocol: /^https?$/ })
    .transform((url) => url.replace(/\/+$/, ''))
    .optional()
    .describe(
      'Absolute address of the service including its path, as clients see it; links begin with it. Default: taken ' +
        'from each request.',
    ),
  trustProxy: off.describe(
    'Trust X-Forwarded-Proto, -Host and -Prefix, and the last address in -For. Use it only behind a proxy that ' +
      'sets these headers itself.',
  ),
  secrets: z
    .array(z.string().min(32))
    .min(1)
    .optional()
    .describe(
      'Secrets that sign links, of 32 or more characters. The first one signs, and all are accepted. Default: a ' +
        'random one, so links work only as long as this process, and only in it.',
    ),
  authenticate: z
    .custom<Authenticate>((value) => typeof value === 'function')
    .optional()
    .describe('Replaces the key check. It gets every request except storage links and health checks.'),
  anonymous: callerSchema
    .optional()
    .describe(
      'Application for requests without a key. Use it only if nobody else can reach the service. On a loopback ' +
        'address, `serve` then refuses all host names but localhost and that of `publicUrl`, because web pages can ' +
        'make other names lead there; with `trustProxy`, the proxy has to.',
    ),
  links: z
    .strictObject({
      uploadSeconds: seconds.default(3600).describe('Lifetime of an upload link.'),
      inputSeconds: seconds.default(24 * 3600).describe('Lifetime of the download link of an upload.'),
      resultSeconds: seconds
        .default(3600)
        .describe('Lifetime of a result link; every request for the job returns fresh ones.'),
    })
    .prefault({}),
  directStorage: off.describe(
    'Return links to the blob store itself (S3 or similar) for uploads and results. Such uploads do not accept ' +
      'chunked bodies, and their size is checked only when a job is created.',
  ),
  limits: z
    .strictObject({
      jsonBytes: count.default(256 * 1024).describe('Largest JSON body.'),
      paramsBytes: count
        .default(16 * 1024)
        .describe('Largest `params` of a job, as JSON; they are stored with the job and shown with it.'),
      listBytes: count
        .default(2 * 1024 ** 2)
        .describe('Largest page of a list; a request for a larger one is refused with the size that fits.'),
      storedBytes: z
        .union([z.literal(false), count])
        .default(100 * 1024 ** 3)
        .describe(
          'Uploads, results and records (of jobs, batches and failing webhook receivers) that an application may ' +
            'keep. When they are full, uploads and new jobs get 429 STORAGE_FULL. Results of accepted jobs may ' +
            'exceed the limit, as may the uploads in progress of each process that shares a store. `false`: no limit.',
        ),
      uploadsInFlight: count.default(20).describe('Uploads of an application at a time, for each process.'),
      idleMs: timer
        .default(30_000)
        .describe('Longest wait for the next bytes of a body, or for a client to read more.'),
      waitingRequests: count
        .default(200)
        .describe('Event streams and waiting requests of an application at a time, for each process.'),
      allWaitingRequests: count
        .default(500)
        .describe(
          'The same for all applications. When all are taken, the application with the most loses one to another ' +
            'that has none.',
        ),
      downloads: count
        .default(50)
        .describe('Files and archives sent through links of an application at a time, for each process.'),
      allDownloads: count
        .default(250)
        .describe(
          'The same for all applications. When all are taken, the application with the most loses one to another ' +
            'that has none; its client can continue with a range request.',
        ),
      heartbeatMs: timer
        .default(15_000)
        .describe('How often an idle event stream sends a heartbeat, and `authenticate` is asked about it again.'),
      minBytesPerSecond: z
        .number()
        .positive()
        .default(1024)
        .describe('A body that is slower than this for longer than idleMs is rejected.'),
      discardBytes: z
        .number()
        .int()
        .nonnegative()
        .default(64 * 1024 ** 2)
        .describe(
          'How much of a rejected body is still read before the response, so that clients that keep sending ' +
            'receive it.',
        ),
    })
    .prefault({}),
  rateLimits: z
    .strictObject({
      create: rateSchema.default({ requests: 10, perSeconds: 1 }),
      status: rateSchema.default({ requests: 1000, perSeconds: 1 }),
      other: rateSchema.default({ requests: 60, perSeconds: 1 }),
      link: rateSchema.default({ requests: 300, perSeconds: 1 }),
      wrongKeys: rateSchema.default({ requests: 60, perSeconds: 60 }),
    })
    .prefault({})
    .describe(
      'Requests an application may make, for each process; a list counts as one `other` request, and as one more for ' +
        'each 64 KiB. `link`: downloads by its signed links. `wrongKeys`: requests with a wrong key from one address ' +
        '(or IPv6 network of 64 bits), after which only keys that have worked before are checked; wrong keys with ' +
        'the form and checksum of those that this service makes are counted separately.',
    ),
  cors: z
    .union([
      z.literal(false),
      z.strictObject({
        origins: z.union([z.literal('*'), z.array(originSchema)]),
        maxAgeSeconds: seconds.default(600),
      }),
    ])
    .default(false)
    .describe('Web pages that may call the service from a browser.'),
  deprecated: z
    .record(
      pathSchema,
      z.strictObject({ since: z.iso.date(), sunset: z.iso.date().optional(), link: z.url().optional() }),
    )
    .default({})
    .describe('Deprecated base paths; their answers carry Deprecation and Sunset headers.'),
  console: off.describe('Serve /console, a page for uploading songs, following jobs and listening to stems.'),
  operator: z
    .strictObject({ key: z.string().min(16) })
    .optional()
    .describe(
      'Serve /operator, a page for the operators of the service: it shows and controls the jobs of all ' +
        'applications. `key` (16 or more characters) opens this page and nothing else. Default: ' +
        'off.',
    ),
  manageKeys: off.describe(
    'Serve /application/key, where the holder of a key lists, creates and revokes the keys of its own application.',
  ),
  live: z
    .strictObject({
      separate: z
        .custom<SeparateLive>((value) => typeof value === 'function')
        .describe('What separates: `liveService()` of `stemwork/live`.'),
      streams: count
        .default(2)
        .describe(
          'Streams at a time, for each process; each takes up to 60 % of a core. When all are taken, ' +
            'the application with the most loses one to another that has none.',
        ),
    })
    .optional()
    .describe(
      'Serve /live, a WebSocket that separates a stream while it plays, with `serve`, or on a server of your ' +
        'own after `acceptUpgrades(server, handler)`, both from `stemwork/node`. Needs the package `ws`. Default: ' +
        'off.',
    ),
  resumableUploads: off.describe(
    'Serve /upload/resumable, where interrupted uploads can be resumed (tus 1.0), in addition to tickets. Needs ' +
      'the package `@tus/server`.',
  ),
  docs: z.boolean().default(true).describe('Serve /openapi.json, /docs, /llms.txt and /llms-full.txt.'),
  metrics: off.describe('Serve /metrics, without a key.'),
})

export type HandlerSettings = z.input<typeof handlerOptionsSchema>
export type HandlerOptions = z.output<typeof handlerOptionsSchema>

/** @throws StemworkError `INVALID_OPTIONS` naming the option and what it expects. */
export function resolveHandlerOptions(settings: HandlerSettings): HandlerOptions {
  const result = checkInput(handlerOptionsSchema, settings)
  if (result.success) return result.data
  const problems = issueTexts(result, 'options')
  throw new StemworkError('INVALID_OPTIONS', `Invalid HTTP options. ${problems.join('; ')}.`, { details: { problems } })
}
