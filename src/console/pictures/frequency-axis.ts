export const lowestHertz = 40
export const highestHertz = 16_000

/** Height of a frequency in the picture of a spectrum, 0..1. */
export function heightOf(hertz: number): number {
  return Math.log(hertz / lowestHertz) / Math.log(highestHertz / lowestHertz)
}
