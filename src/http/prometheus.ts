// The text format of Prometheus: https://prometheus.io/docs/instrumenting/exposition_formats/
// Built here: prom-client would install 3.2 MB in four packages.

type Labels = Readonly<Record<string, string>>

/** The lines of one metric. @param samples labels, as `labelText` writes them, and values */
export function metricLines(type: string, name: string, help: string, samples: Iterable<[string, number]>): string[] {
  const values = Array.from(samples, ([labels, value]) => line(name, labels, value))
  return [`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`, ...values]
}

/** Counts by labels. */
export function counter(name: string, help: string) {
  const counts = new Map<string, number>()
  return {
    add(labels: Labels, count = 1): void {
      const key = labelText(labels)
      counts.set(key, (counts.get(key) ?? 0) + count)
    },
    lines: () => metricLines('counter', name, help, counts),
  }
}

/** Seconds by labels, counted in buckets. @param bounds of the buckets, in seconds, ascending */
export function histogram(name: string, help: string, bounds: readonly number[]) {
  const series = new Map<string, { below: number[]; sum: number; count: number }>()
  return {
    observe(labels: Labels, seconds: number): void {
      const key = labelText(labels)
      const { below, sum, count } = series.get(key) ?? { below: bounds.map(() => 0), sum: 0, count: 0 }
      const nowBelow = below.map((known, index) => known + Number(seconds <= (bounds[index] ?? Infinity)))
      series.set(key, { below: nowBelow, sum: sum + seconds, count: count + 1 })
    },
    lines: () => [
      ...metricLines('histogram', name, help, []),
      ...[...series].flatMap(([key, { below, sum, count }]) => [
        ...below.map((known, index) => line(`${name}_bucket`, `${key},le="${bounds[index]}"`, known)),
        line(`${name}_bucket`, `${key},le="+Inf"`, count),
        line(`${name}_sum`, key, sum),
        line(`${name}_count`, key, count),
      ]),
    ],
  }
}

export function labelText(labels: Labels): string {
  return Object.entries(labels)
    .map(([name, value]) => `${name}="${value.replace(/[\\"\n]/g, (sign) => (sign === '\n' ? '\\n' : `\\${sign}`))}"`)
    .join(',')
}

function line(name: string, labels: string, value: number): string {
  return `${name}${labels && `{${labels}}`} ${value}`
}
