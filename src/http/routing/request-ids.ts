import { randomBytes } from 'node:crypto'

const idBytes = 15
const idLength = (idBytes / 3) * 4
const idsAtOnce = 256

/** IDs for requests without one: 120 random bits in base64url, generated for many requests at once. */
export class RequestIds {
  #drawn = ''
  #position = 0

  next(): string {
    if (this.#position === this.#drawn.length) {
      this.#drawn = randomBytes(idBytes * idsAtOnce).toString('base64url')
      this.#position = 0
    }
    return this.#drawn.slice(this.#position, (this.#position += idLength))
  }
}
