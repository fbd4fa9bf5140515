import { availableParallelism, cpus, loadavg } from 'node:os'

/** The value of `--name=value`, as a number if the default is a number. */
export function option(name, usual) {
  const given = process.argv.find((argument) => argument.startsWith(`--${name}=`))?.slice(name.length + 3)
  return given === undefined || typeof usual !== 'number' ? (given ?? usual) : Number(given)
}

/** The machine, in words. */
export function machine() {
  const processors = `${cpus()[0]?.model.trim()}, ${availableParallelism()} processors`
  return `${processors}, load ${loadavg()[0].toFixed(1)} at the start`
}

/** The median; of an even number of values, the upper middle one. */
export function middle(values) {
  return values.toSorted((a, b) => a - b)[values.length >> 1]
}

export function printRows(rows) {
  for (const [name, value] of rows) console.log(`${name.padEnd(34)} ${value}`)
  console.log()
}
