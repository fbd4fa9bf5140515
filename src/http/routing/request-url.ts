/** The parts of a request's address that are read. */
export interface RequestUrl {
  /** Its scheme and host. */
  origin: URL
  pathname: string
  /** Empty, or begins with a question mark. */
  search: string
}

const parts = /^(https?:\/\/[^/?#]+)(\/[^?#]*)(\?[^#]*)?/

/**
 * Parses the normalised addresses of requests. Only the origin needs a `URL`, and nearly all requests have the same
 * one.
 */
export class RequestUrlReader {
  #known = ''
  #origin = new URL('http://localhost')

  /** @throws TypeError if the address is not valid. */
  read(address: string): RequestUrl {
    const [, origin, pathname, search = ''] = parts.exec(address) ?? []
    if (origin === undefined || pathname === undefined) {
      const { origin, pathname, search } = new URL(address)
      return { origin: new URL(origin), pathname, search }
    }
    if (origin !== this.#known) {
      this.#origin = new URL(origin)
      this.#known = origin
    }
    return { origin: this.#origin, pathname, search }
  }
}
