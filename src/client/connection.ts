import { answerError, badAnswer, ClientError, movedError, networkError, parsed } from './client-error.js'
import { backOff, pause } from './pause.js'

export interface ClientOptions {
  /** Address of the service with its path, for example `https://stems.example.org/v1`. */
  baseUrl: string
  /**
   * Sent as the raw value of `Authorization`. Omit it where the host identifies its users differently, for example by a
   * cookie.
   */
  apiKey?: string
  /** Default: the global one. */
  fetch?: typeof fetch
  /** Retries after 429, 503 and broken connections. Default: 4. */
  retries?: number
}

export interface RequestOptions {
  signal?: AbortSignal
}

export interface ApiRequest extends RequestOptions {
  method?: 'GET' | 'POST' | 'DELETE'
  query?: URLSearchParams
  json?: unknown
  headers?: Record<string, string>
  /** Whether the request may be repeated without harm after a broken connection. Default: only for GET. */
  isRepeatable?: boolean
}

/** A longer `Retry-After` is reported as an error instead of waited for. */
export const longestWaitMs = 60_000
/** Far more characters than the service sends; a decompressed answer of another server must not fill the memory. */
const longestAnswer = 2 ** 26
const back = { firstMs: 500, longestMs: 10_000 }

/** Sends the requests of one client: adds the key, maps errors, retries. */
export class Connection {
  readonly baseUrl: string
  readonly fetch: typeof fetch
  /** The header that the key is sent in. */
  readonly authorization: Record<string, string>
  readonly #retries: number

  constructor({ baseUrl, apiKey, fetch: given, retries = 4 }: ClientOptions) {
    if (typeof baseUrl !== 'string' || !/^(https?:\/)?\/[^?#]*$/.test(baseUrl))
      throw new TypeError(
        'createClient needs baseUrl, the address of a service such as https://stems.example.org/v1, not ' +
          `${JSON.stringify(baseUrl ?? null)}.`,
      )
    this.baseUrl = baseUrl.replace(/\/+$/, '')
    // Browsers refuse a `fetch` that is called on another object than the window.
    this.fetch = given ?? ((input, init) => fetch(input, init))
    this.authorization = apiKey === undefined ? {} : { authorization: apiKey }
    this.#retries = retries
  }

  /** @throws ClientError for every status but 2xx; the signal's reason */
  async json<Answer>(path: string, request: ApiRequest = {}): Promise<{ value: Answer; headers: Headers }> {
    return this.#request(path, request, async (response) => {
      const value = parsed(await bodyText(response, request.signal))
      if (value === undefined) throw badAnswer(response.status, 'it is not JSON')
      return { value: value as Answer, headers: response.headers }
    })
  }

  /** The body of the answer. @throws as `json` */
  async value<Answer>(path: string, request?: ApiRequest): Promise<Answer> {
    return (await this.json<Answer>(path, request)).value
  }

  /** Returns the answer with its body unread, after as many attempts as are allowed. */
  async send(path: string, request: ApiRequest = {}): Promise<Response> {
    return this.#request(path, request, async (response) => response)
  }

  /** @param read reads the answer within the attempt, as the connection may break midway */
  #request<Value>(
    path: string,
    { method = 'GET', query, json, headers, signal, isRepeatable = method === 'GET' }: ApiRequest,
    read: (response: Response) => Promise<Value>,
  ): Promise<Value> {
    const search = query?.size ? `?${query.toString()}` : ''
    const request: RequestInit = {
      method,
      signal,
      // A followed redirect may turn a POST into a GET.
      ...(method === 'GET' ? {} : { redirect: 'manual' }),
      // Lets a page that is being closed still send the request.
      ...(method === 'DELETE' ? { keepalive: true } : {}),
      headers: {
        ...this.authorization,
        ...(json === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(json === undefined ? {} : { body: JSON.stringify(json) }),
    }
    const attempt = async () => read(await this.once(this.baseUrl + path + search, request))
    return this.retrying(attempt, { isRepeatable, signal })
  }

  /** Sends one request. @throws ClientError; the signal's reason */
  async once(url: string, request: RequestInit): Promise<Response> {
    const signal = request.signal ?? undefined
    const response = await overNetwork(() => this.fetch(url, request), signal, this.baseUrl)
    if (response.ok) return response
    const { status, type, redirected, headers } = response
    // A redirect to another origin drops the key, hence the 401.
    if (redirected ? status === 401 : type === 'opaqueredirect' || (status >= 300 && headers.has('location')))
      throw movedError(status, redirected ? response.url : headers.get('location'))
    const body = await bodyText(response, signal)
    throw answerError({ status, body, header: (name) => headers.get(name) })
  }

  /** Retries temporary refusals and, if the request is repeatable, broken connections. */
  async retrying<Value>(
    attempt: () => Promise<Value>,
    { isRepeatable, signal }: { isRepeatable: boolean; signal?: AbortSignal },
  ): Promise<Value> {
    for (let retries = 0; ; retries++) {
      try {
        return await attempt()
      } catch (error) {
        if (!ClientError.is(error) || retries >= this.#retries) throw error
        const isPassing =
          error.status === 429 ||
          error.status === 503 ||
          (isRepeatable && (error.code === 'NETWORK' || error.status === 502 || error.status === 504))
        if (!isPassing || (error.retryAfterMs ?? 0) > longestWaitMs) throw error
        // Jitter: clients that were refused together should not return together.
        const waitMs =
          error.retryAfterMs === undefined ? backOff(retries, back) : error.retryAfterMs + Math.random() * back.firstMs
        await pause(waitMs, signal)
      }
    }
  }
}

/** @throws ClientError for a network failure; the signal's reason */
async function overNetwork<Value>(work: () => Promise<Value>, signal?: AbortSignal, address?: string): Promise<Value> {
  try {
    return await work()
  } catch (error) {
    signal?.throwIfAborted()
    throw networkError(error, address)
  }
}

async function bodyText(response: Response, signal: AbortSignal | undefined): Promise<string> {
  const text = await overNetwork(() => textOf(response), signal)
  if (text.length > longestAnswer) throw badAnswer(response.status, 'it is too long')
  return text
}

/** Reads the body as text; stops soon after `longestAnswer` characters. */
async function textOf(response: Response): Promise<string> {
  const reader = response.body?.getReader()
  // Not every `fetch` streams bodies.
  if (!reader) return await response.text()
  const decoder = new TextDecoder()
  let text = ''
  while (text.length <= longestAnswer) {
    const { done, value } = await reader.read()
    text += decoder.decode(value, { stream: !done })
    if (done) return text
  }
  await reader.cancel()
  return text
}
