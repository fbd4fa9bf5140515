export type Fact = readonly [name: string, value: string | null | undefined]

/** A card of names and values; facts without a value are left out. */
export function FactList({ title, note, facts }: { title: string; note?: string; facts: readonly Fact[] }) {
  const id = `facts-${title.replaceAll(' ', '-').toLowerCase()}`
  return (
    <section class="card" aria-labelledby={id}>
      <h2 id={id}>{title}</h2>
      {note !== undefined && <p class="quiet">{note}</p>}
      <dl class="facts">
        {facts.map(
          ([name, value], index) =>
            value && (
              <div key={`${name} ${index}`}>
                <dt>{name}</dt>
                <dd>{value}</dd>
              </div>
            ),
        )}
      </dl>
    </section>
  )
}
