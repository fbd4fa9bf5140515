import { type BlockType, blockTypes } from './hybrid-filter.js'

/** A part this many times as strong as those before it is an attack. */
const attackRatio = 10
/** Of a part, the sum of squares below which nobody hears what precedes it. */
const leastEnergy = 1e-5

/**
 * Chooses short transforms where a sound begins, so that the noise of quantising it precedes it by no more than a few
 * milliseconds.
 */
export class BlockChoice {
  readonly #before: number[][]
  #lastAttacks = [false, false, false]
  #isNextShort = false
  #type: BlockType = blockTypes.long

  constructor(channels: number) {
    this.#before = Array.from({ length: channels }, () => [0, 0, 0])
  }

  /**
   * @param energies of the three parts of the next granule, by channel
   * @returns how to transform this granule
   */
  next(energies: readonly (readonly number[])[]): BlockType {
    const attacks = [0, 1, 2].map((part) => energies.some((each, channel) => this.#isAttack(channel, each[part]!)))
    const isShort = this.#isNextShort
    // A short transform is centred: it covers the last part of the granule before, and all but the last of its own.
    this.#isNextShort = this.#lastAttacks[2]! || attacks[0]! || attacks[1]!
    this.#lastAttacks = attacks
    this.#type = followingType(this.#type, isShort, this.#isNextShort)
    return this.#type
  }

  #isAttack(channel: number, energy: number): boolean {
    const before = this.#before[channel]!
    const mean = (before[0]! + before[1]! + before[2]!) / 3
    before.shift()
    before.push(energy)
    return energy > leastEnergy && energy > attackRatio * mean
  }
}

function followingType(last: BlockType, isShort: boolean, isNextShort: boolean): BlockType {
  const { long, start, short, stop } = blockTypes
  if (isShort || (isNextShort && last === short)) return short
  if (isNextShort) return start
  return last === short ? stop : long
}
