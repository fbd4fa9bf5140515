import type { Shares } from '../../core/engine/limits/shares.js'
import type { TraceContext } from '../../core/engine/job/trace-context.js'
import type { ApiRequest, RequestUrl } from './api-request.js'
import type { HttpEngine } from '../http-engine.js'
import type { JobWatch } from '../job-watch.js'
import type { QueryTurns } from './query-turns.js'
import type { LoopTurns } from './loop-turns.js'
import type { KeyWatch } from '../auth/key-watch.js'
import type { KnownKeys } from '../auth/known-keys.js'
import type { Metrics } from '../metrics.js'
import type { HandlerOptions, Sender } from '../options.js'
import { noticeProxy, publicOrigin } from './public-origin.js'
import type { RateLimiter } from './rate-limit.js'
import type { RequestBody } from './request-body.js'
import type { StorageUse } from './storage-use.js'
import type { TransferSlots } from './transfer-slots.js'
import type { KeySeal } from '../auth/sealed-key.js'
import type { UrlSigner } from '../auth/signed-url.js'
import type { WrongKeys } from './wrong-keys.js'

/** State that all requests share. */
export interface Service {
  readonly engine: HttpEngine
  readonly options: HandlerOptions
  readonly signer: UrlSigner
  readonly seal: KeySeal
  readonly watch: JobWatch
  readonly keys: KnownKeys
  readonly keyWatch: KeyWatch
  readonly wrongKeys: WrongKeys
  readonly limiter: RateLimiter
  readonly turns: LoopTurns
  readonly queries: QueryTurns
  /** Slots for files. */
  readonly downloads: TransferSlots
  readonly largeAnswers: TransferSlots
  /** Slots for JSON bodies. */
  readonly largeBodies: TransferSlots
  /** Live streams; absent if the service has none. */
  readonly streams: Shares | undefined
  readonly storage: StorageUse
  /** Absent if metrics are turned off. */
  readonly metrics: Metrics | undefined
}

/** Facts about a request that are known at once. */
export interface RequestFacts {
  service: Service
  request: ApiRequest
  requestId: string
  body: RequestBody
  /** Headers for every response. */
  headers: Record<string, string>
  /** Name of its route, once that is known. */
  operation: string
  /** Set while it has its turn. */
  endTurn?(): void
}

/** The address at which a request came in. */
interface Place {
  url: RequestUrl
  /** Path in front of the routes, mount path included. */
  basePath: string
}

/** The sender of a request. */
interface Origin {
  caller?: Sender
  /** The request's place in its sender's trace. */
  trace?: TraceContext
  /** For a route that reads ahead: resolves to `undefined` if the key still works, or else to the error. */
  refusal?: Promise<Error | undefined>
}

/** One request on its way through the service. */
export class Call {
  readonly service: Service
  readonly request: ApiRequest
  readonly requestId: string
  readonly body: RequestBody
  /** Headers for every response. */
  readonly headers: Record<string, string>
  /** The sender; `undefined` on routes that need no key. */
  readonly caller: Sender | undefined
  readonly trace: TraceContext | undefined
  /** For a request that begins to wait, and no longer needs the event loop. */
  readonly endTurn: (() => void) | undefined
  readonly #refusal: Promise<Error | undefined> | undefined
  readonly #url: RequestUrl
  readonly #basePath: string

  // Takes three small objects as they are: joining them would cost more than looking up a job.
  constructor(facts: RequestFacts, { url, basePath }: Place, { caller, trace, refusal }: Origin = {}) {
    this.service = facts.service
    this.request = facts.request
    this.requestId = facts.requestId
    this.body = facts.body
    this.headers = facts.headers
    this.endTurn = facts.endTurn
    this.caller = caller
    this.trace = trace
    this.#refusal = refusal
    this.#url = url
    this.#basePath = basePath
  }

  /** @throws Problem if the key has ended since it last worked; errors of the store */
  async requireAllowed(): Promise<void> {
    const refusal = await this.#refusal
    if (refusal !== undefined) throw refusal
  }

  // These two are created on demand: most requests need neither.

  get search(): URLSearchParams {
    return new URLSearchParams(this.#url.search)
  }

  /** Whether the request is outside the base path, where only routes with `atRoot` respond. */
  get isAtRoot(): boolean {
    return !this.#url.pathname.startsWith(this.#basePath)
  }

  /**
   * Base of the service's pages as seen from this address, with a slash at the end. Relative if possible, for proxies
   * that add a path.
   */
  get pageBase(): string {
    if (this.isAtRoot) return `${this.baseUrl}/`
    const depth = this.#url.pathname.slice(this.#basePath.length).split('/').length - 1
    return depth > 1 ? '../'.repeat(depth - 1) : './'
  }

  /** Absolute address of the service as this client sees it, without a slash at the end. */
  get baseUrl(): string {
    const { options, engine } = this.service
    if (options.publicUrl !== undefined) return options.publicUrl
    const { origin } = this.#url
    if (!options.trustProxy) noticeProxy(this.request, origin, engine.options.logger)
    return publicOrigin(this.request, origin, options.trustProxy) + this.#basePath
  }
}

/** A request with a known sender. */
export interface KeyedCall extends Call {
  readonly caller: Sender
}
