import { setTimeout as delay } from 'node:timers/promises'
import { type CrashDeployment, publicOrigin } from './deployment.js'

export interface SubmittedJob {
  number: number
  /** Every id that a submission or its repetition returned; more than one id means that a job was accepted twice. */
  ids: Set<string>
  key: string
  isBad: boolean
  upload: string | undefined
}

const patienceMs = 180_000

/**
 * A client that behaves as clients should: it repeats unanswered requests, with the same idempotency key, at any node.
 */
export class CrashClient {
  readonly #origins: string[]
  /** Number of answers, by answer, that show a fault of the service. */
  readonly wrongAnswers: Record<string, number> = {}
  #next = 0

  constructor(deployment: CrashDeployment) {
    this.#origins = deployment.nodes.filter(({ kind }) => kind === 'api').map(({ origin }) => origin)
  }

  /** Resolves when the job is acknowledged. */
  async submit(number: number, key: string, { isBad, hasUpload }: { isBad: boolean; hasUpload: boolean }) {
    const job: SubmittedJob = { number, key, ids: new Set(), isBad, upload: undefined }
    let inputUrl: string | undefined
    if (hasUpload) {
      job.upload = `upload of ${number}, ${'x'.repeat(number * 50)}\n`
      inputUrl = await this.#upload(job.upload, key)
    }
    const body = JSON.stringify({ name: `job ${number}`, workflow: 'test/crash', params: { number, inputUrl, isBad } })
    const headers = { authorization: key, 'content-type': 'application/json', 'idempotency-key': `job-${number}` }
    const repeats = number % 10 === 0 ? 2 : 1
    for (let repeat = 0; repeat < repeats; repeat++) {
      const answer = await this.#untilAnswered('/v1/job', { method: 'POST', headers, body })
      job.ids.add(((await answer.json()) as { id: string }).id)
    }
    return job
  }

  /** The text of each result file. */
  async results(id: string, key: string): Promise<Record<string, string>> {
    const answer = await this.#untilAnswered(`/v1/job/${id}`, { headers: { authorization: key } })
    const { result } = (await answer.json()) as { result: Record<string, string> | null }
    const texts: Record<string, string> = {}
    for (const [name, url] of Object.entries(result ?? {})) {
      const file = await this.#untilAnswered(url.slice(publicOrigin.length), {})
      texts[name] = await file.text()
    }
    return texts
  }

  async #upload(text: string, key: string): Promise<string> {
    for (const giveUpAt = Date.now() + patienceMs; ;) {
      const ticket = await this.#untilAnswered('/v1/upload', { headers: { authorization: key } })
      const { uploadUrl, downloadUrl } = (await ticket.json()) as { uploadUrl: string; downloadUrl: string }
      // A ticket writes once, so an upload with an unknown outcome is repeated with a new ticket.
      const answer = await this.#ask(uploadUrl.slice(publicOrigin.length), { method: 'PUT', body: text })
      if (answer?.status === 200) return downloadUrl
      if (Date.now() > giveUpAt) throw new Error('No upload came to its end.')
      await delay(200)
    }
  }

  async #untilAnswered(path: string, init: RequestInit): Promise<Response> {
    for (const giveUpAt = Date.now() + patienceMs; ;) {
      const answer = await this.#ask(path, init)
      if (answer?.status === 200) return answer
      if (Date.now() > giveUpAt)
        throw new Error(`${init.method ?? 'GET'} ${path} had no success: ${answer?.status} ${await answer?.text()}`)
      await delay(answer?.status === 429 ? 1000 : 200)
    }
  }

  /** Undefined: the request was not answered. */
  async #ask(path: string, init: RequestInit): Promise<Response | undefined> {
    const origin = this.#origins[this.#next++ % this.#origins.length]
    try {
      const answer = await fetch(`${origin}${path}`, { ...init, signal: AbortSignal.timeout(40_000) })
      const isExpected =
        [200, 429].includes(answer.status) || (answer.status === 503 && answer.headers.has('retry-after'))
      if (!isExpected) {
        const words =
          `${init.method ?? 'GET'} ${path.split(/[?/]/)[2]}: ${answer.status} ` + (await answer.clone().text())
        this.wrongAnswers[words.slice(0, 300)] = (this.wrongAnswers[words.slice(0, 300)] ?? 0) + 1
      }
      // The connection may also break in the middle of a body.
      const bytes = await answer.arrayBuffer()
      return new Response(bytes, { status: answer.status, headers: answer.headers })
    } catch {
      return undefined
    }
  }
}
