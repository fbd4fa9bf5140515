/**
 * Loudness over time: the loudest of each interval, in LUFS; NaN before the first window is full, -Infinity for
 * silence.
 */
export interface LoudnessCourse {
  intervalSeconds: number
  momentary: Float32Array
  shortTerm: Float32Array
}

const maxPoints = 1200

/** Keeps at most 1200 points: when they are full, each pair is merged. */
export class CourseBuilder {
  readonly #momentary = new Float32Array(maxPoints)
  readonly #shortTerm = new Float32Array(maxPoints)
  #perPoint = 1
  #count = 0

  /** Adds a step of time. */
  add(momentary: number, shortTerm: number): void {
    if (this.#count === maxPoints * this.#perPoint) this.#halve()
    const point = Math.floor(this.#count / this.#perPoint)
    const isNew = this.#count++ % this.#perPoint === 0
    this.#momentary[point] = isNew ? momentary : larger(this.#momentary[point]!, momentary)
    this.#shortTerm[point] = isNew ? shortTerm : larger(this.#shortTerm[point]!, shortTerm)
  }

  finish(stepSeconds: number): LoudnessCourse {
    const used = Math.ceil(this.#count / this.#perPoint)
    return {
      intervalSeconds: stepSeconds * this.#perPoint,
      momentary: this.#momentary.slice(0, used),
      shortTerm: this.#shortTerm.slice(0, used),
    }
  }

  #halve(): void {
    for (const points of [this.#momentary, this.#shortTerm])
      for (let point = 0; point < maxPoints / 2; point++)
        points[point] = larger(points[2 * point]!, points[2 * point + 1]!)
    this.#perPoint *= 2
  }
}

function larger(one: number, other: number): number {
  return Number.isNaN(one) ? other : Math.max(one, Number.isNaN(other) ? one : other)
}
