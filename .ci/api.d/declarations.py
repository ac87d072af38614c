"""The declarations of public items, from the JSON that rustdoc wrote about their crates."""

import collections
import json
import re

# What needs no path.
PRELUDE = set(
    "AsMut AsRef Box Clone Copy Debug Default Display DoubleEndedIterator Drop Eq ExactSizeIterator Extend Fn FnMut "
    "FnOnce From Hash Into IntoIterator Iterator Option Ord PartialEq PartialOrd Result Send Sized String Sync "
    "ToOwned ToString TryFrom TryInto Unpin Vec".split()
)

# `foreign` has the types of other crates that the declaration names, `flaws` what is wrong with it.
Line = collections.namedtuple("Line", "path text foreign flaws")


def only(mapping):
    """The key and the value of what is an enum in Rust."""
    return next(iter(mapping.items()))


class Crate:
    """What rustdoc wrote about a crate."""

    def __init__(self, document):
        self.index = document["index"]
        self.root = self.index[str(document["root"])]
        self.name = self.root["name"]
        self.paths = {id: (tuple(it["path"]), it["kind"]) for id, it in document["paths"].items()}
        own = (id for id, it in document["paths"].items() if it["crate_id"] == 0)
        self.by_path = {self.paths[id]: id for id in own}

    def __getitem__(self, id):
        return self.index[str(id)]


class Api:
    """All lines of the crates, whose first have the names that users write."""

    def __init__(self, crates):
        self.crates = {crate.name: crate for crate in crates}
        self.lines = []
        self.foreign = set()
        self.items = {}
        paths = collections.defaultdict(set)
        for crate in crates:
            self.walk(crate, crate.root, crate.name, paths)
        rank = list(self.crates).index
        best = lambda path: (rank(path.partition("::")[0]), path.count("::"), path)
        self.names = {key: min(every, key=best) for key, every in paths.items()}
        for key, (crate, item) in self.items.items():
            name = self.names[key]
            self.item(crate, item, name)
            for path in paths[key] - {name}:
                self.line(path, f"use {name}")
        for crate in crates:
            self.on_types_of_others(crate)

    def line(self, path, text, flaws=()):
        self.lines.append(Line(path, text, frozenset(self.foreign), frozenset(flaws)))
        self.foreign = set()

    # Public paths.

    def find(self, crate, id):
        """An item, and the crate that defines it; None if that is none of ours."""
        path = crate.paths.get(str(id))
        if path and path[0][0] in self.crates:
            crate = self.crates[path[0][0]]
            id = crate.by_path[path]
        item = crate.index.get(str(id))
        return item and (crate, item)

    def walk(self, crate, module, path, paths):
        self.line(path, "mod")
        for id in module["inner"]["module"]["items"]:
            self.visit(crate, crate[id], path, paths)

    def visit(self, crate, item, path, paths):
        kind, inner = only(item["inner"])
        name = f"{path}::{inner['name'] if kind == 'use' else item['name']}"
        if kind == "use":
            found = self.find(crate, inner["id"])
            if not found:
                origin = crate.paths.get(str(inner["id"]), [inner["source"].split("::")])[0]
                self.foreign.add(f"{origin[0]}::{origin[-1]}" if len(origin) > 1 else f"the whole crate {origin[0]}")
                self.line(name, f"use {'::'.join(origin)}")
                return
            crate, item = found
            if item is crate.root:
                self.foreign.add(f"the whole crate {crate.name}")
                self.line(name, f"use {crate.name}")
                return
            kind = only(item["inner"])[0]
            if inner["is_glob"]:
                for id in item["inner"]["module"]["items"]:
                    self.visit(crate, crate[id], path, paths)
                return
        if kind == "module":
            self.walk(crate, item, name, paths)
        elif kind != "impl":
            key = crate.name, item["id"]
            self.items[key] = crate, item
            paths[key].add(name)

    # Items.

    def item(self, crate, item, path, of=""):
        kind, inner = only(item["inner"])
        open_end = "#[non_exhaustive] " if "non_exhaustive" in item["attrs"] else ""
        text = getattr(self, f"of_{kind}")(crate, inner)
        flaws = self.flaws(crate, item, kind, inner) if kind in ("struct", "enum", "union") else ()
        self.line(path, open_end + text + of, flaws)
        members = inner.get("variants", []) + inner.get("items", []) if isinstance(inner, dict) else []
        if kind in ("struct", "union"):
            fields = inner["kind"] if kind == "struct" else {"plain": inner}
            members = "plain" in fields and fields["plain"]["fields"] or []
        for id in members:
            self.item(crate, crate[id], f"{path}::{crate[id]['name']}")
        if kind not in ("variant", "trait"):
            for id in isinstance(inner, dict) and inner.get("impls") or []:
                self.impl(crate, crate[id]["inner"]["impl"], path)

    def flaws(self, crate, item, kind, inner):
        """What a type lacks: room to grow or a reason why it never will, and `Debug`."""
        is_open = kind == "enum" or kind == "struct" and not self.has_private_fields(inner["kind"])
        if is_open and not self.is_newtype(inner) and "non_exhaustive" not in item["attrs"] and "Exhaustive: " not in (item["docs"] or ""):
            yield "is neither #[non_exhaustive] nor says why: `Exhaustive: …`"
        impls = (crate[id]["inner"]["impl"] for id in inner["impls"])
        if not any(impl["trait"] and impl["trait"]["path"].split("::")[-1] == "Debug" for impl in impls):
            yield "does not implement Debug"

    def is_newtype(self, inner):
        fields = inner.get("kind")
        return isinstance(fields, dict) and len(fields.get("tuple", [])) == 1

    def has_private_fields(self, fields):
        if "tuple" in fields:
            return None in fields["tuple"]
        return fields != "unit" and fields["plain"]["has_stripped_fields"]

    def of_struct(self, crate, inner):
        params, where = self.generics(crate, inner["generics"])
        kind = inner["kind"]
        if kind == "unit":
            return f"struct{params};{where}"
        if "tuple" in kind:
            return f"struct{params}({self.fields(crate, kind['tuple'])}){where}"
        return f"struct{params} {{{' .. ' * kind['plain']['has_stripped_fields']}}}{where}"

    def of_union(self, crate, inner):
        params, where = self.generics(crate, inner["generics"])
        return f"union{params}{where}"

    def of_struct_field(self, crate, inner):
        return f"field {self.type(crate, inner)}"

    def of_enum(self, crate, inner):
        params, where = self.generics(crate, inner["generics"])
        return f"enum{params}{where}"

    def of_variant(self, crate, inner):
        kind = inner["kind"]
        value = f" = {inner['discriminant']['value']}" if inner["discriminant"] else ""
        if kind == "plain":
            return f"variant{value}"
        if "tuple" in kind:
            return f"variant({self.fields(crate, kind['tuple'])}){value}"
        fields = [f"{crate[id]['name']}: {self.field(crate, id)}" for id in kind["struct"]["fields"]]
        fields += [".."] * kind["struct"]["has_stripped_fields"]
        return f"variant {{ {', '.join(fields)} }}{value}"

    def fields(self, crate, ids):
        return ", ".join("_" if id is None else self.field(crate, id) for id in ids)

    def field(self, crate, id):
        return self.type(crate, crate[id]["inner"]["struct_field"])

    def of_trait(self, crate, inner):
        params, where = self.generics(crate, inner["generics"])
        bounds = self.bounds(crate, inner["bounds"])
        return f"{'unsafe ' * inner['is_unsafe']}trait{params}{bounds and ': ' + bounds}{where}"

    def of_function(self, crate, inner):
        signature, header = inner["sig"], inner["header"]
        params, where = self.generics(crate, inner["generics"])
        words = "".join(f"{word} " for word in ("const", "async", "unsafe") if header[f"is_{word}"])
        inputs = ", ".join(self.input(crate, *each) for each in signature["inputs"])
        return f"{words}fn{params}({inputs}){self.output(crate, signature['output'])}{where}"

    def input(self, crate, name, type):
        text = self.type(crate, type)
        if name == "self" and re.fullmatch(r"(&('\w+ )?(mut )?)?Self", text):
            return text.replace("Self", "self")
        return f"{name}: {text}"

    def of_assoc_const(self, crate, inner):
        return f"const {self.type(crate, inner['type'])}"

    of_constant = of_assoc_const

    def of_static(self, crate, inner):
        return f"static {'mut ' * inner['is_mutable']}{self.type(crate, inner['type'])}"

    def of_assoc_type(self, crate, inner):
        params, where = self.generics(crate, inner["generics"])
        bounds = self.bounds(crate, inner["bounds"])
        default = f" = {self.type(crate, inner['type'])}" if inner["type"] else ""
        return f"type{params}{bounds and ': ' + bounds}{default}{where}"

    def of_type_alias(self, crate, inner):
        params, where = self.generics(crate, inner["generics"])
        return f"type{params} = {self.type(crate, inner['type'])}{where}"

    def of_macro(self, crate, inner):
        return "macro"

    # Implementations.

    def impl(self, crate, impl, path):
        if impl["blanket_impl"]:
            return
        if impl["trait"] is None:
            params, where = self.generics(crate, impl["generics"])
            target = self.type(crate, impl["for"])
            is_special = where or ":" in params or not target.endswith(params or target.partition("<")[0])
            of = f", of impl{params} {target}{where}" if is_special else ""
            types, self.foreign = self.foreign, set()
            for id in impl["items"]:
                self.foreign |= types
                self.item(crate, crate[id], f"{path}::{crate[id]['name']}", of)
            self.foreign = set()
        elif not impl["is_synthetic"]:
            is_hidden = impl["trait"]["path"] == "StructuralPartialEq" or "PinnedFieldsOf" in json.dumps(impl["generics"])
            # rustdoc also lists what types of others get from this one.
            if not is_hidden and self.type(crate, impl["for"]).partition("<")[0] == path:
                self.line(path, self.of_impl(crate, impl))
            self.foreign = set()
        elif impl["is_negative"] and impl["trait"]["path"] in ("Send", "Sync", "Unpin"):
            self.line(path, f"impl !{impl['trait']['path']}")

    def of_impl(self, crate, impl):
        params, where = self.generics(crate, impl["generics"])
        target = self.type(crate, impl["for"])
        trait = self.path(crate, impl["trait"])
        types = [(crate[id]["name"], only(crate[id]["inner"])) for id in impl["items"]]
        types = [f"{name} = {self.type(crate, it['type'])}" for name, (kind, it) in types if kind == "assoc_type"]
        if types:
            start, end = (trait[:-1], ", ") if trait.endswith(">") else (trait, "<")
            trait = f"{start}{end}{', '.join(types)}>"
        is_own = "resolved_path" in impl["for"] and target.endswith(params or target.partition("<")[0])
        if is_own and not where and ":" not in params and " + " not in trait:
            return f"impl {'!' * impl['is_negative']}{trait}"
        return f"impl{params} {'!' * impl['is_negative']}{trait} for {target}{where}"

    def on_types_of_others(self, crate):
        """The traits that a crate implements for types that it does not define, or for references."""
        for item in crate.index.values():
            impl = item["inner"].get("impl")
            if not impl or item["crate_id"] or not impl["trait"] or impl["blanket_impl"] or impl["is_synthetic"]:
                continue
            target = impl["for"]
            found = "resolved_path" in target and self.find(crate, target["resolved_path"]["id"])
            if found and found[0] is crate:
                continue
            while "borrowed_ref" in target:
                target = target["borrowed_ref"]["type"]
            text = self.of_impl(crate, impl)
            # One for all types stands with the trait.
            name = self.name(crate, impl["trait"]["id"]) if "generic" in target else self.type(crate, target)
            self.line(name.partition("<")[0], text)

    # Types.

    def generics(self, crate, generics):
        params, where = [], []
        for param in generics["params"]:
            kind, inner = only(param["kind"])
            if kind == "lifetime":
                bounds, default = " + ".join(inner["outlives"]), ""
            elif kind == "const":
                bounds, default = self.type(crate, inner["type"]), ""
            elif inner["is_synthetic"]:
                continue
            else:
                bounds = self.bounds(crate, inner["bounds"])
                default = f" = {self.type(crate, inner['default'])}" if inner["default"] else ""
            params.append("const " * (kind == "const") + param["name"] + (bounds and f": {bounds}") + default)
        for predicate in generics["where_predicates"]:
            kind, inner = only(predicate)
            if kind == "lifetime_predicate":
                where.append(f"{inner['lifetime']}: {' + '.join(inner['outlives'])}")
            else:
                target = self.binder(inner["generic_params"]) + self.type(crate, inner["type"])
                where.append(f"{target}: {self.bounds(crate, inner['bounds'])}")
        return params and f"<{', '.join(params)}>" or "", where and f" where {', '.join(where)}" or ""

    def binder(self, params):
        return f"for<{', '.join(param['name'] for param in params)}> " if params else ""

    def bounds(self, crate, bounds):
        return " + ".join(self.bound(crate, *only(bound)) for bound in bounds)

    def bound(self, crate, kind, inner):
        if kind == "outlives":
            return inner
        if kind == "use":
            return f"use<{', '.join(it if isinstance(it, str) else only(it)[1] for it in inner)}>"
        mark = {"none": "", "maybe": "?", "maybe_const": "~const "}[inner["modifier"]]
        return self.binder(inner["generic_params"]) + mark + self.path(crate, inner["trait"])

    def output(self, crate, type):
        return f" -> {self.type(crate, type)}" if type else ""

    def path(self, crate, path):
        return self.name(crate, path["id"]) + self.args(crate, path["args"])

    def args(self, crate, args):
        if not args:
            return ""
        kind, inner = only(args)
        if kind == "parenthesized":
            inputs = ", ".join(self.type(crate, each) for each in inner["inputs"])
            return f"({inputs}){self.output(crate, inner['output'])}"
        parts = [self.arg(crate, arg) for arg in inner["args"]]
        for constraint in inner["constraints"]:
            kind, value = only(constraint["binding"])
            value = f" = {self.arg(crate, value)}" if kind == "equality" else f": {self.bounds(crate, value)}"
            parts.append(constraint["name"] + self.args(crate, constraint["args"]) + value)
        return f"<{', '.join(parts)}>" if parts else ""

    def arg(self, crate, arg):
        if arg == "infer":
            return "_"
        kind, inner = only(arg)
        return {"lifetime": lambda: inner, "type": lambda: self.type(crate, inner)}.get(kind, lambda: inner["expr"])()

    def type(self, crate, type):
        if type == "infer":
            return "_"
        kind, inner = only(type)
        if kind in ("generic", "primitive"):
            return inner
        if kind == "resolved_path":
            return self.path(crate, inner)
        if kind == "impl_trait":
            return f"impl {self.bounds(crate, inner)}"
        if kind == "dyn_trait":
            traits = [self.binder(it["generic_params"]) + self.path(crate, it["trait"]) for it in inner["traits"]]
            return " + ".join(["dyn " + traits[0], *traits[1:], *filter(None, [inner["lifetime"]])])
        if kind == "tuple":
            return f"({', '.join(self.type(crate, each) for each in inner)}{',' * (len(inner) == 1)})"
        if kind == "slice":
            return f"[{self.type(crate, inner)}]"
        if kind == "array":
            return f"[{self.type(crate, inner['type'])}; {inner['len']}]"
        if kind == "borrowed_ref":
            lifetime = f"{inner['lifetime']} " if inner["lifetime"] else ""
            return f"&{lifetime}{'mut ' * inner['is_mutable']}{self.type(crate, inner['type'])}"
        if kind == "raw_pointer":
            return f"*{'mut' if inner['is_mutable'] else 'const'} {self.type(crate, inner['type'])}"
        if kind == "function_pointer":
            inputs = ", ".join(self.type(crate, each) for _, each in inner["sig"]["inputs"])
            return f"{self.binder(inner['generic_params'])}fn({inputs}){self.output(crate, inner['sig']['output'])}"
        if kind == "qualified_path":
            target, name = self.type(crate, inner["self_type"]), inner["name"] + self.args(crate, inner["args"])
            trait = inner["trait"] and inner["trait"]["path"] and self.path(crate, inner["trait"])
            return f"<{target} as {trait}>::{name}" if trait else f"{target}::{name}"
        raise KeyError(kind)

    def name(self, crate, id):
        """The name of a type or a trait."""
        found = self.find(crate, id)
        if found and (found[0].name, found[1]["id"]) in self.names:
            return self.names[found[0].name, found[1]["id"]]
        path = crate.paths[str(id)][0]
        if path[0] in ("core", "alloc", "std"):
            is_known = path[-1] in PRELUDE and path[1] not in ("io", "fmt") or path[-1] in ("Debug", "Display")
            return path[-1] if is_known else "::".join(("std", *path[1:2], path[-1]))
        if path[0] in self.crates and path[-1] == "Sealed":
            return "Sealed"
        if path[0] in self.crates:
            self.foreign.add(f"{'::'.join(path)}, which is not public")
        else:
            self.foreign.add(f"{path[0]}::{path[-1]}")
        return f"{path[0]}::{path[-1]}"
