import { StemworkError } from '../../core/engine/errors.js'
import type { KeyedCall } from '../routing/call.js'
import { permit } from '../routing/permission.js'
import type { WebSocketConnection } from '../routing/web-socket-connection.js'
import type { LiveFormat } from '../options.js'
import { receivedSamples } from './received-samples.js'

/** Closing codes of RFC 6455. */
const closing = { done: 1000, badData: 1007, policy: 1008, failed: 1011, tryLater: 1013 } as const

/** Audio is charged to the application in steps of this many seconds. */
const chargedSeconds = 10

/** One stream of one client. */
export class LiveSession {
  readonly #socket: WebSocketConnection
  readonly #call: KeyedCall
  readonly #format: LiveFormat
  readonly #stopped = new AbortController()
  #seconds = 0
  #uncharged = 0
  #late = { blocks: 0, seconds: 0 }
  /** Whether the client has sent or read anything since the last ping. */
  #isAlive = true
  /** Bytes sent and received since the last check for an idle stream. */
  #moved = 0

  constructor(socket: WebSocketConnection, call: KeyedCall, format: LiveFormat) {
    this.#socket = socket
    this.#call = call
    this.#format = format
  }

  /** Runs until the stream ends. Never rejects. */
  async run(): Promise<void> {
    // First, even if the client is turned away: an error without a listener would end the process.
    this.#socket.on('close', () => this.#stopped.abort()).on('error', () => this.#stopped.abort())
    const { streams } = this.#call.service
    const share = streams?.tryTake(this.#call.caller.id, () =>
      this.#close(closing.tryLater, 'Other applications needed this stream. Try again later.'),
    )
    if (!share) return this.#close(closing.tryLater, 'All live streams are taken. Try again later.')
    const timers = [this.#heartbeat(), this.#endIfSilent()]
    const permission = permit(this.#call)
    permission.signal.addEventListener('abort', () => this.#close(closing.policy, 'The API key has ended.'))
    try {
      await this.#separate()
    } catch (error) {
      this.#fail(error)
    } finally {
      for (const timer of timers) clearInterval(timer)
      permission.release()
      share.release()
      await this.#charge().catch(() => undefined)
    }
  }

  async #separate(): Promise<void> {
    const { options } = this.#call.service
    if (!options.live) throw new Error('a stream was opened without the option live')
    const samples = receivedSamples(this.#socket)
    for await (const { bytes, seconds, isLate } of options.live.separate(samples, this.#format, this.#stopped.signal)) {
      await this.#sent(bytes)
      this.#seconds += seconds
      this.#uncharged += seconds
      if (isLate) this.#late = { blocks: this.#late.blocks + 1, seconds: this.#late.seconds + seconds }
      if (this.#uncharged >= chargedSeconds) await this.#charge()
    }
    const { blocks: lateBlocks, seconds: lateSeconds } = this.#late
    const rounded = (seconds: number) => Math.round(1000 * seconds) / 1000
    await this.#sent(
      JSON.stringify({ type: 'end', seconds: rounded(this.#seconds), lateBlocks, lateSeconds: rounded(lateSeconds) }),
    )
    this.#close(closing.done, '')
  }

  /** Resolves when the message has left this process, which is as fast as the client reads. */
  #sent(message: Uint8Array | string): Promise<void> {
    return new Promise((resolve, reject) =>
      this.#socket.send(message, (error) => {
        // Sending fails only on a connection that has ended.
        if (error) this.#stopped.abort()
        if (error) return reject(error)
        this.#note(message.length)
        resolve()
      }),
    )
  }

  async #charge(): Promise<void> {
    const seconds = this.#uncharged
    this.#uncharged = 0
    await this.#call.service.engine.chargeAudio(this.#call.caller.id, seconds)
  }

  /**
   * Ends the stream of a client that is gone, or that neither sends nor reads. A pong may wait behind megabytes of
   * samples, so these count as well.
   */
  #heartbeat(): NodeJS.Timeout {
    this.#socket.on('pong', () => this.#note(0)).on('message', ({ length }) => this.#note(length))
    return setInterval(() => {
      if (!this.#isAlive) return this.#socket.terminate()
      this.#isAlive = false
      this.#socket.ping()
    }, this.#call.service.options.limits.heartbeatMs)
  }

  #note(bytes: number): void {
    this.#isAlive = true
    this.#moved += bytes
  }

  /** An idle stream would hold a slot that others may need. */
  #endIfSilent(): NodeJS.Timeout {
    const { idleMs, minBytesPerSecond } = this.#call.service.options.limits
    return setInterval(() => {
      if (this.#moved < (minBytesPerSecond * idleMs) / 1000)
        this.#close(closing.policy, `Too few samples arrived in ${idleMs / 1000} s. Connect again to continue.`)
      this.#moved = 0
    }, idleMs)
  }

  #fail(error: unknown): void {
    if (this.#stopped.signal.aborted) return
    if (StemworkError.is(error) && error.code === 'QUOTA_EXCEEDED') return this.#close(closing.policy, error.message)
    if (StemworkError.is(error) && error.code === 'BAD_INPUT') return this.#close(closing.badData, error.message)
    this.#call.service.engine.options.logger.error(
      { requestId: this.#call.requestId, err: error },
      'A live stream failed inside the service.',
    )
    this.#close(closing.failed, 'The service failed. Try again; if it fails again, tell the operator.')
  }

  /** The protocol allows a reason of at most 123 bytes. */
  #close(code: number, reason: string): void {
    this.#stopped.abort()
    // As part of a stream, so that a character that was cut is left out.
    this.#socket.close(code, new TextDecoder().decode(Buffer.from(reason).subarray(0, 123), { stream: true }))
  }
}
