/** Number of passes of the event loop until the work is done. */
export async function passesDuring(work: Promise<unknown>): Promise<number> {
  let passes = 0
  const counted = () => {
    passes++
    next = setImmediate(counted)
  }
  let next = setImmediate(counted)
  await work
  clearImmediate(next)
  return passes
}
