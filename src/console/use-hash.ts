import { useEffect, useState } from 'preact/hooks'

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
