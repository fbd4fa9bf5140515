import { type BlockType, blockTypes } from './hybrid-filter.js'

/** A part this many times as strong as the parts before it is an attack. */
const attackRatio = 10
/** Sum of squares of a part below which noise before it is inaudible. */
const leastEnergy = 1e-5

/**
 * Chooses short transforms where a sound begins, so that the noise of quantizing it precedes it by no more than a few
 * milliseconds.
 *
 * @returns a function that chooses the transform of the next granule by the energies of its three parts, by channel
 */
export function blockChoice(channels: number): (energies: readonly (readonly number[])[]) => BlockType {
  const before = Array.from({ length: channels }, () => [0, 0, 0])
  let lastAttacks = [false, false, false]
  let isNextShort = false
  let type: BlockType = blockTypes.long
  return (energies) => {
    const attacks = [0, 1, 2].map((part) => energies.some((each, channel) => isAttack(before[channel]!, each[part]!)))
    const isShort = isNextShort
    // A short transform is centred: it covers the last part of the granule before, and all but the last of its own.
    isNextShort = lastAttacks[2]! || attacks[0]! || attacks[1]!
    lastAttacks = attacks
    type = followingType(type, isShort, isNextShort)
    return type
  }
}

/** @param before energies of the three parts before it; `energy` is added to them */
function isAttack(before: number[], energy: number): boolean {
  const mean = (before[0]! + before[1]! + before[2]!) / 3
  before.shift()
  before.push(energy)
  return energy > leastEnergy && energy > attackRatio * mean
}

function followingType(last: BlockType, isShort: boolean, isNextShort: boolean): BlockType {
  const { long, start, short, stop } = blockTypes
  if (isShort || (isNextShort && last === short)) return short
  if (isNextShort) return start
  return last === short ? stop : long
}
