import { useEffect, useState } from 'preact/hooks'

/** Query string with a question mark, or empty. */
export function queryOf(filters: object): string {
  const query = new URLSearchParams(Object.entries(filters).filter(([, value]) => value))
  return query.size > 0 ? `?${query.toString()}` : ''
}

/** Reads the hash of the address, and again whenever it changes. */
export function useHash<Value>(read: (hash: string) => Value): Value {
  const [value, setValue] = useState(() => read(location.hash))
  useEffect(() => {
    const onChange = () => setValue(() => read(location.hash))
    addEventListener('hashchange', onChange)
    return () => removeEventListener('hashchange', onChange)
  }, [])
  return value
}
