import { useEffect, useState } from 'preact/hooks'

/** With a question mark, or empty. */
export function queryOf(filters: object): string {
  const query = new URLSearchParams(Object.entries(filters).filter(([, value]) => value))
  return query.size > 0 ? `?${query.toString()}` : ''
}

/** What the hash of the address says, also when it changes. */
export function useHash<Value>(read: (hash: string) => Value): Value {
  const [value, setValue] = useState(() => read(location.hash))
  useEffect(() => {
    const onChange = () => setValue(() => read(location.hash))
    addEventListener('hashchange', onChange)
    return () => removeEventListener('hashchange', onChange)
  }, [])
  return value
}
