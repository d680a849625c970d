import { useEffect, useRef } from 'react';

/** Calls the action of a key that is pressed anywhere on the page, but where a control or a dialog takes it. */
export function useKeys(actions: Record<string, () => void>): void {
  const now = useRef(actions);
  now.current = actions;
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      const action = Object.hasOwn(now.current, event.key) ? now.current[event.key] : undefined;
      if (!action || event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
      if (isTaken(event.target as HTMLElement, event.key)) return;
      event.preventDefault();
      action();
    };
    document.addEventListener('keydown', press);
    return () => document.removeEventListener('keydown', press);
  }, []);
}

function isTaken(target: HTMLElement, key: string): boolean {
  if (document.querySelector('[role="dialog"]')) return true;
  if (target.matches('textarea, select, input:not([type="checkbox"]), [contenteditable]')) return true;
  return key === 'Enter' && target.matches('a, button, input');
}
