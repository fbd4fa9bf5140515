import { hash } from 'node:crypto'

/** SHA-256 of a value's JSON with sorted keys: equal for equivalent requests. */
export function requestDigest(value: unknown): string {
  return hash('sha256', canonicalJson(value))
}

function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_key, inner: unknown) =>
    typeof inner === 'object' && inner !== null && !Array.isArray(inner)
      ? Object.fromEntries(
          Object.keys(inner)
            .sort()
            .map((key) => [key, (inner as Record<string, unknown>)[key]]),
        )
      : inner,
  )
}
